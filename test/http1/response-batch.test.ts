import { describe, expect, test } from "bun:test";
import type { RequestHandler, Response } from "../../src/http1/index.ts";
import { slowRejectedClients } from "../../src/http1/slow-rejected-clients.ts";
import { ConnectionScheduler } from "../../src/http1/connection-scheduler.ts";
import { get, nextIteration, respond, TestConnection } from "./test-connection.ts";

/** Connections of one server. `log` has their requests and their writes in order. */
function connections(names: readonly string[], handle: RequestHandler["handle"] = () => respond("")) {
  const scheduler = new ConnectionScheduler(() => 0);
  const log: string[] = [];
  const clients = names.map((name) => {
    const client = new TestConnection((request) => (log.push(`${name} request`), handle(request)), {
      scheduler,
      pace: slowRejectedClients(),
    });
    const { write } = client;
    client.write = (data) => (log.push(`${name} write`), write.call(client, data));
    return client;
  });
  const receive = (text: string) => {
    for (const { connection } of clients) connection.onData(Buffer.from(text, "latin1"));
  };
  return { clients, log, receive };
}

describe("responses of several connections", () => {
  test("are written at the end of the iteration that brought their requests", async () => {
    const { log, receive } = connections(["a", "b"]);
    receive(get("/"));
    expect(log).toEqual(["a request", "b request"]);
    await nextIteration();
    expect(log).toEqual(["a request", "b request", "a write", "b write"]);
  });

  test("are written in the turn in which a database completes them, and together", async () => {
    const commit = Promise.withResolvers<Response>();
    const { clients, log, receive } = connections(["a", "b"], () => commit.promise.then());
    receive(get("/"));
    await nextIteration();
    commit.resolve(respond("stored"));
    commit.promise.then(() => log.push("committed"));
    setImmediate(() => log.push("end of the turn"));
    await nextIteration();
    expect(log.slice(2)).toEqual(["committed", "a write", "b write", "end of the turn"]);
    expect(clients.map(({ bodies }) => bodies)).toEqual([["stored"], ["stored"]]);
  });

  test("are written when their connection closes, and not again at the end of the turn", async () => {
    const { clients, log, receive } = connections(["a", "b"]);
    receive(get("/", "Connection: close"));
    expect(log).toEqual(["a request", "a write", "b request", "b write"]);
    await nextIteration();
    expect(log.length).toBe(4);
    expect(clients.map(({ events }) => events)).toEqual([["end"], ["end"]]);
  });

  test("are not written to a client that has disconnected", async () => {
    const { clients, log, receive } = connections(["a", "b"]);
    receive(get("/"));
    clients[0]?.terminate();
    await nextIteration();
    expect(log).toEqual(["a request", "b request", "b write"]);
  });

  test("are written when the connection is evicted while it is slowed", () => {
    const { clients, log, receive } = connections(["a"], () => respond("", 401));
    const [client] = clients;
    receive(get("/").repeat(30));
    expect([client?.connection.isIdle, client?.connection.isEvictable]).toEqual([false, true]);
    client?.connection.evict();
    expect(log.at(-1)).toBe("a write");
    expect(client?.statuses.length).toBe(21);
  });

  test("stop the reading of a client that does not take them", async () => {
    const { clients, receive } = connections(["a", "b"]);
    for (const client of clients) client.writableBytes = client === clients[0] ? 10 : Infinity;
    receive(get("/"));
    await nextIteration();
    expect(clients.map(({ events }) => events)).toEqual([["pause"], []]);
  });
});
