import { expect } from "bun:test";
import { Petstore } from "../../../src/client/index.ts";
import { HttpConnection, type HttpRequest, NoResponse } from "../../../trials/harness/http-connection.ts";
import type { Setup } from "./requests.ts";

const CONNECTIONS = 8;

export interface Load {
  /** The nth request of all. Pets that it creates have the name. */
  readonly request: (name: string, n: number) => HttpRequest;
  /** A new connection for each request; otherwise connections are kept. */
  readonly newConnections?: boolean;
}

/**
 * Clients send requests during the change, the next one as soon as there is a response, and retry nothing. Every
 * request succeeds, and every pet exists once.
 */
export async function expectNoErrors(setup: Setup, change: () => Promise<void>, load: Load): Promise<void> {
  const { port } = setup.balancer;
  const name = crypto.randomUUID();
  const created: bigint[] = [];
  const failed: string[] = [];
  let sent = 0;
  const stopped = new AbortController();
  const sendRequests = async () => {
    let connection: HttpConnection | undefined;
    while (!stopped.signal.aborted) {
      const next = load.request(name, sent++);
      try {
        if (!connection?.isOpen) connection = await HttpConnection.open(port);
        const { status, body } = await connection.send(next);
        if (status === 201) created.push(BigInt(JSON.parse(body).id));
        else if (status !== 200) failed.push(`${next.method} ${status} ${body}`);
      } catch (error) {
        if (!(error instanceof NoResponse)) throw error;
        failed.push(`${next.method} ${error.message}`);
        connection?.close();
      }
      if (load.newConnections) connection?.close();
    }
    connection?.close();
  };
  const connections = Array.from({ length: CONNECTIONS }, sendRequests);
  await change();
  stopped.abort();
  await Promise.all(connections);

  expect(failed.slice(0, 5)).toEqual([]);
  expect(created.length).toBeGreaterThan(0);
  const client = new Petstore({ baseUrl: `http://127.0.0.1:${port}/v1`, key: setup.key });
  const stored: bigint[] = [];
  for await (const pet of client.pets.list()) if (pet.name === name) stored.push(pet.id);
  expect(stored).toEqual(created.toSorted((a, b) => Number(a - b)));
}
