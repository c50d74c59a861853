import { expect } from "bun:test";
import {
  HttpConnection,
  type HttpRequest,
  type HttpResponse,
  NoResponse,
  sendOnce,
} from "../../../trials/harness/http-connection.ts";
import { bearer, createPet, listPets } from "./requests.ts";
import type { Setup } from "./suite.ts";

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
  const created = succeeded.filter(({ status }) => status === 201).map(({ body }) => body);
  expect(created.length).toBeGreaterThan(0);
  const stored = (await listAll(setup)).filter((pet) => pet.includes(name));
  expect(stored.length).toBe(created.length);
  expect(new Set(stored)).toEqual(new Set(created));
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

/** Each pet as its text in the list, which is its text in the response to its creation. */
async function listAll({ key, balancer }: Setup): Promise<string[]> {
  const pets: string[] = [];
  let path: string | undefined = "/v1/pets?limit=100";
  while (path !== undefined) {
    const { body, headers }: HttpResponse = await sendOnce(balancer.port, { path, headers: [bearer(key)] });
    pets.push(...body.slice(1, -1).split(/(?<=\}),/));
    path = /<[^>]*(\/v1\/[^>]+)>; rel="next"/.exec(headers.link ?? "")?.[1];
  }
  return pets;
}
