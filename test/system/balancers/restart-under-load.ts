import { expect } from "bun:test";
import { Petstore } from "../../../src/client/index.ts";
import {
  HttpConnection,
  type HttpRequest,
  type HttpResponse,
  NoResponse,
} from "../../../trials/harness/http-connection.ts";
import { createPet, listPets, type Setup } from "./requests.ts";

const CONNECTIONS = 8;

/** Lists and idempotent creates during the change: every request succeeds, and every pet exists once. */
export function expectNoErrors(setup: Setup, change: () => Promise<void>): Promise<void> {
  const { key } = setup;
  return expectSuccess(setup, change, {
    request: (name, n) => (n % 2 === 0 ? listPets(key) : createPet(key, name, `${name}-${n}`)),
  });
}

/** The same for creates without an Idempotency-Key, which are never retried. */
export function expectNoErrorsWithoutRetries(
  setup: Setup,
  change: () => Promise<void>,
  options: { newConnections?: boolean } = {},
): Promise<void> {
  return expectSuccess(setup, change, { request: (name) => createPet(setup.key, name), ...options });
}

async function expectSuccess(
  setup: Setup,
  change: () => Promise<void>,
  { request, ...options }: { request: (name: string, n: number) => HttpRequest; newConnections?: boolean },
): Promise<void> {
  const name = crypto.randomUUID();
  const load = startLoad({ port: setup.balancer.port, request: (n) => request(name, n), ...options });
  await change();
  const { succeeded, failed } = await load.stop();
  expect(failed.slice(0, 5)).toEqual([]);
  const created = succeeded
    .filter(({ status }) => status === 201)
    .map(({ body }) => BigInt(JSON.parse(body).id));
  expect(created.length).toBeGreaterThan(0);
  const client = new Petstore({ baseUrl: `http://127.0.0.1:${setup.balancer.port}/v1`, key: setup.key });
  const stored: bigint[] = [];
  for await (const pet of client.pets.list()) if (pet.name === name) stored.push(pet.id);
  expect(stored).toEqual(created.toSorted((a, b) => Number(a - b)));
}

interface LoadOptions {
  readonly port: number;
  /** The nth request of all. */
  readonly request: (n: number) => HttpRequest;
  /** A new connection for each request; otherwise connections are kept. */
  readonly newConnections?: boolean;
}

/** Sends the next request as soon as there is a response, and retries nothing. */
function startLoad({ port, request, newConnections = false }: LoadOptions) {
  const succeeded: HttpResponse[] = [];
  const failed: string[] = [];
  let sent = 0;
  const stopped = new AbortController();

  const sendRequests = async () => {
    let connection: HttpConnection | undefined;
    while (!stopped.signal.aborted) {
      const next = request(sent++);
      try {
        if (!connection?.isOpen) connection = await HttpConnection.open(port);
        const response = await connection.send(next);
        if (response.status === 200 || response.status === 201) succeeded.push(response);
        else failed.push(`${next.method} ${response.status} ${response.body}`);
      } catch (error) {
        if (!(error instanceof NoResponse)) throw error;
        failed.push(`${next.method} ${error.message}`);
        connection?.close();
      }
      if (newConnections) connection?.close();
    }
    connection?.close();
  };
  const connections = Array.from({ length: CONNECTIONS }, sendRequests);
  return {
    async stop() {
      stopped.abort();
      await Promise.all(connections);
      return { succeeded, failed };
    },
  };
}
