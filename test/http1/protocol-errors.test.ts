import { describe, expect, test } from "bun:test";
import { echoBody, echoTarget, get, TestConnection } from "./test-connection.ts";

describe("a request that is not valid HTTP/1.1", () => {
  test.each([
    [400, "a line that is not a request line", "asdf\r\n\r\n"],
    [431, "a head of 17,000 bytes without an end", `GET / HTTP/1.1\r\nA: ${"a".repeat(17_000)}`],
    [505, "HTTP/3.0", "GET / HTTP/3.0\r\nHost: x\r\n\r\n"],
  ])("%d as the handler says, and the connection closes: %s", (status, _, sent) => {
    const client = new TestConnection(echoTarget).receive(sent, get("/"));
    expect(client.sent).toMatch(
      /^HTTP\/1\.1 \d+ .*\r\nDate: .*\r\nConnection: close\r\nContent-Length: 18\r\n\r\nprotocol error \d+$/,
    );
    expect([client.statuses, client.events]).toEqual([[status], ["shutdown"]]);
  });
});

describe("the bounds of a request head", () => {
  const statusesOf = (request: string) => new TestConnection(echoTarget).receive(request).statuses;

  test("16 KiB without an end are 431, one byte less waits for the rest", () => {
    const start = get("/", "A: ").slice(0, -4);
    expect(statusesOf(start.padEnd(16_383, "a"))).toEqual([]);
    expect(statusesOf(start.padEnd(16_384, "a"))).toEqual([431]);
  });

  test("8 KiB of a request line without an end are 414, one byte less waits for the rest", () => {
    expect(statusesOf("GET /".padEnd(8_191, "a"))).toEqual([]);
    expect(statusesOf("GET /".padEnd(8_192, "a"))).toEqual([414]);
    expect(statusesOf("A".repeat(8_192))).toEqual([400]);
  });

  test("the response to HEAD whose body is malformed has no body", () => {
    const client = new TestConnection(echoBody(100));
    client.receive("HEAD / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "x\r\n");
    expect(client.sent).toMatch(/^HTTP\/1\.1 400 [^]*Content-Length: 18\r\n\r\n$/);
  });
});
