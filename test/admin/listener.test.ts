import { afterEach, describe, expect, test } from "bun:test";
import { listenForOperators } from "../../src/admin/admin-listener.ts";
import { AdminListenError } from "../../src/admin/listen-error.ts";
import { startupHandler } from "../../src/http/app.ts";
import type { HttpServer } from "../../src/http1/index.ts";
import { freePort } from "../../harness/ports.ts";

const opened: HttpServer[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.close(0);
});

function listen(port: number, isDefault: boolean): HttpServer {
  const server = listenForOperators(
    { host: "127.0.0.1", port, isDefault },
    { handler: startupHandler, onError: () => {} },
  );
  opened.push(server);
  return server;
}

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
