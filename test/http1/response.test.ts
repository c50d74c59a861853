import { describe, expect, test } from "bun:test";
import { type HeaderFields, headerLine, type Request } from "../../src/http1/index.ts";
import { DATE_LINE, get, nextIteration, respond, TestConnection } from "./test-connection.ts";

describe("a response", () => {
  test("has a date, its length in bytes and its body", () => {
    const client = new TestConnection(() => ({ status: 201, headerLines: "A: b\r\n", body: '"猫"' }));
    client.receive(get("/"));
    const sent = Buffer.from(client.sent, "latin1").toString();
    expect(sent).toBe(`HTTP/1.1 201 Created\r\nA: b\r\n${DATE_LINE}Content-Length: 5\r\n\r\n"猫"`);
    expect(client.events).toEqual([]);
  });

  test.each([
    ["204: neither a length nor a body", "GET", 204, null],
    ["to HEAD: the length, but no text", "HEAD", 200, "猫"],
    ["to HEAD: the length, but no bytes", "HEAD", 200, Buffer.from("猫")],
  ] as const)("%s", (_, method, status, body) => {
    const client = new TestConnection(() => ({ status, headerLines: "", body }));
    client.receive(get("/").replace("GET", method).repeat(2));
    const [phrase, length] = body === null ? ["No Content", ""] : ["OK", "Content-Length: 3\r\n"];
    expect(client.sent).toBe(`HTTP/1.1 ${status} ${phrase}\r\n${DATE_LINE}${length}\r\n`.repeat(2));
    expect(client.traffic.bytesSent).toBe(client.sent.length);
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

test("the remote address is the one of the socket, if it had any when it was accepted; the address of the client follows from the peer", () => {
  const handle = ({ remoteAddress, clientAddress }: Request) =>
    respond(`<${remoteAddress}> ${clientAddress}`);
  const seen = (options: ConstructorParameters<typeof TestConnection>[1]) =>
    new TestConnection(handle, options).receive(get("/", "X-For: 192.0.2.1")).bodies;
  expect(seen({})).toEqual(["<203.0.113.9> 203.0.113.9"]);
  expect(seen({ remoteAddress: null })).toEqual(["<> "]);
  const clientOf = (headers: Pick<HeaderFields, "get">) => headers.get("x-for") ?? "";
  expect(seen({ peer: { id: "203.0.113.0", clientOf } })).toEqual(["<203.0.113.9> 192.0.2.1"]);
});
