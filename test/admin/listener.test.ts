import { afterEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import type { HttpServer, RequestHandler } from "../../src/http1/index.ts";
import { AdminListenError, listenForOperators } from "../../src/operator/admin-listener.ts";
import { jsonResponse } from "../../src/api/responses.ts";
import { freePort } from "../../trials/harness/server.ts";
import { until } from "../timing.ts";

const opened: HttpServer[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close(0);
});

/** Waits for the body of each request. */
const HANDLER: RequestHandler = {
  async handle(request) {
    await request.body(100_000);
    return jsonResponse(200, "", "{}");
  },
  handleError: () => jsonResponse(500, "", "{}"),
  protocolError: (status) => jsonResponse(status, "", "{}"),
};

function listen(port: number, isDefault: boolean): HttpServer {
  const server = listenForOperators(
    { host: "127.0.0.1", port, isDefault },
    { createHandler: () => HANDLER, onError: () => {} },
  );
  opened.push(server);
  return server;
}

test("one address that takes all connections and sends half a request on each keeps nobody else out", async () => {
  const server = listen(0, false);
  const half = "POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n{";
  const sockets = Array.from({ length: 200 }, () => {
    const socket = connect({ host: "127.0.0.1", port: server.port, localAddress: "127.0.0.2" });
    socket.on("error", () => {});
    socket.write(half);
    return socket;
  });
  await until(() => server.statistics.bytesReceived >= 200 * half.length, 10_000);
  expect(server.statistics).toMatchObject({ connections: 200, rejected: 0, evicted: 0 });
  const response = await fetch(`http://127.0.0.1:${server.port}/livez`);
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(server.statistics.rejected).toBe(0);
  expect(server.statistics.evicted).toBeGreaterThan(0);
  for (const socket of sockets) socket.destroy();
});

describe("the port of the listener for operators", () => {
  test("a default that is taken moves to the next free port", () => {
    const port = freePort();
    expect(listen(port, true).port).toBe(port);
    const second = listen(port, true).port;
    expect(second).toBeGreaterThan(port);
    expect(listen(port, true).port).toBeGreaterThan(second);
  });

  test("after 20 ports that are taken, any free port is used", () => {
    const port = freePort();
    const ports = Array.from({ length: 21 }, () => listen(port, true).port);
    expect(new Set(ports).size).toBe(21);
    expect(ports.at(-1)).not.toBeWithin(port, port + 20);
  });

  test("one that was asked for and is taken is an error", () => {
    const { port } = listen(0, false);
    expect(() => listen(port, false)).toThrow(AdminListenError);
    expect(() => listen(port, false)).toThrow(`cannot listen for operators on 127.0.0.1 port ${port}`);
  });
});
