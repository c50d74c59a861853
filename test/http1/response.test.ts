import { describe, expect, test } from "bun:test";
import { headerLine } from "../../src/http1/index.ts";
import { DATE_LINE, get, nextIteration, respond, TestConnection } from "./test-connection.ts";

describe("a response", () => {
  test("has a date, its length in bytes and its body", () => {
    const client = new TestConnection(() => ({ status: 201, headerLines: "A: b\r\n", body: '"猫"' }));
    client.receive(get("/"));
    const sent = Buffer.from(client.sent, "latin1").toString();
    expect(sent).toBe(`HTTP/1.1 201 Created\r\nA: b\r\n${DATE_LINE}Content-Length: 5\r\n\r\n"猫"`);
    expect(client.events).toEqual([]);
  });

  test("is handleError's when the handler throws or rejects, and the connection stays open", async () => {
    const failing = [
      () => Promise.reject(new Error("failed")),
      () => {
        throw new Error("failed");
      },
    ];
    for (const handle of failing) {
      const client = new TestConnection(handle).receive(get("/"));
      await nextIteration();
      client.receive(get("/"));
      await nextIteration();
      expect([client.statuses, client.bodies, client.events]).toEqual([[500, 500], ["failed", "failed"], []]);
    }
  });
});

test("a header value that could inject another line is an error", () => {
  expect(headerLine("Location", "/v1/pets/1")).toBe("Location: /v1/pets/1\r\n");
  for (const value of ["a\r\nb: c", "a\nb", "\0", "é"]) {
    expect(() => headerLine("Location", value)).toThrow("Location must be printable ASCII");
  }
});

test("the remote address is the socket's; empty if the client disconnected before the connection was accepted", () => {
  const handle = ({ remoteAddress }: { remoteAddress: string }) => respond(`<${remoteAddress}>`);
  expect(new TestConnection(handle).receive(get("/")).bodies).toEqual(["<203.0.113.9>"]);
  expect(new TestConnection(handle, { remoteAddress: null }).receive(get("/")).bodies).toEqual(["<>"]);
});
