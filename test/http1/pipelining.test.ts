import { describe, expect, test } from "bun:test";
import type { Response } from "../../src/http1/index.ts";
import { WriteBuffer } from "../../src/http1/write-buffer.ts";
import {
  deferredHandler,
  echoTarget,
  get,
  nextIteration,
  respond,
  TestConnection,
} from "./test-connection.ts";

describe("pipelined requests", () => {
  test("are handled 32 at a time, and then other connections get their turn", async () => {
    const client = new TestConnection(echoTarget).receive(get("/a").repeat(100));
    expect(client.statuses.length).toBe(32);
    expect(client.events).toEqual(["pause"]);
    await nextIteration();
    expect(client.statuses.length).toBe(64);
    while (client.statuses.length < 100) await nextIteration();
    expect(client.events).toEqual(["pause", "resume"]);
  });

  test("behind a pending response are read ahead up to 64 KiB", async () => {
    const { handle, resolve } = deferredHandler();
    const client = new TestConnection(handle).receive(get("/"), "x".repeat(65_536));
    expect(client.events).toEqual([]);
    client.receive("x");
    expect(client.events).toEqual(["pause"]);
    await resolve("first");
    expect(client.bodies[0]).toBe("first");
  });
});

describe("a client that does not read its responses", () => {
  test.each<[string, () => Response]>([
    ["text", () => respond("猫".repeat(10))],
    ["bytes", () => ({ ...respond(""), body: Buffer.from("猫".repeat(10)) })],
  ])("gets every byte of %s once it reads, and only then the next response", (_, handle) => {
    const expected = new TestConnection(handle).receive(get("/"), get("/")).sent;
    for (let writableBytes = 0; writableBytes < expected.length; writableBytes++) {
      const client = new TestConnection(handle);
      client.writableBytes = writableBytes;
      client.receive(get("/"), get("/"));
      client.drain(5).drain();
      expect(client.sent).toBe(expected);
      expect(client.traffic).toEqual({ bytesReceived: 2 * get("/").length, bytesSent: expected.length });
      const count = (event: string) => client.events.filter((other) => other === event).length;
      expect(count("pause")).toBe(count("resume"));
    }
  });

  test("does not cause further requests to be handled", () => {
    let handled = 0;
    const client = new TestConnection(() => (handled++, respond("x".repeat(50_000))));
    client.writableBytes = 0;
    client.receive(get("/").repeat(30));
    expect(handled).toBe(2);
  });

  test("is read from again while its connection closes, so that the end of its requests is seen", () => {
    const client = new TestConnection(echoTarget);
    client.writableBytes = 10;
    client.receive(get("/a"), get("/b", "Connection: close") + get("/c"));
    client.drain();
    expect(client.events).toEqual(["pause", "resume", "shutdown"]);
  });
});

test("responses are collected up to 64 KiB before they are written", () => {
  const writes: number[] = [];
  const socket = { write: (data: string | Uint8Array) => (writes.push(data.length), data.length) };
  const writeBuffer = new WriteBuffer(socket, { bytesSent: 0 });
  writeBuffer.append("x".repeat(65_536), 65_536);
  expect(writes).toEqual([]);
  writeBuffer.append("x", 1);
  expect(writes).toEqual([65_537]);
});
