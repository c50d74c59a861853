import { describe, expect, test } from "bun:test";
import { echoBody, echoTarget, get, TestConnection } from "./test-connection.ts";

const fields = (count: number) => Array.from({ length: count }, () => "A: b");
/** A request whose head has so many bytes, the empty line at its end included. */
const headOfBytes = (bytes: number) => get("/", `A: ${"a".repeat(bytes - get("/", "A: ").length)}`);

describe("a request that is not valid HTTP/1.1", () => {
  test.each([
    [400, "a line that is not a request line", "asdf\r\n\r\n"],
    [400, "a TLS handshake", "\x16\x03\x01\x02\x00\x01"],
    [400, "lines that end with LF alone", "GET / HTTP/1.1\nHost: x\n\n"],
    [400, "LF alone", "\n"],
    [400, "LF alone after an empty line", "\r\n\n"],
    [400, "CR alone", "\r\rGET"],
    [400, "a space before a colon", "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n"],
    [431, "a head of 17,000 bytes without an end", `GET / HTTP/1.1\r\nA: ${"a".repeat(17_000)}`],
    [431, "a head of 17,000 bytes", get("/", `A: ${"a".repeat(17_000)}`)],
    [431, "129 header fields", get("/", ...fields(128))],
    [505, "HTTP/3.0", "GET / HTTP/3.0\r\nHost: x\r\n\r\n"],
  ])("%d as the handler says, and the connection closes: %s", (status, _, sent) => {
    const client = new TestConnection(echoTarget).receive(sent, get("/"));
    expect(client.sent).toMatch(
      /^HTTP\/1\.1 \d+ .*\r\nDate: .*\r\nConnection: close\r\nContent-Length: 18\r\n\r\nprotocol error \d+$/,
    );
    expect([client.statuses, client.events]).toEqual([[status], ["shutdown"]]);
  });

  test("is responded to after the valid ones before it", () => {
    expect(new TestConnection(echoTarget).receive(`${get("/a")}asdf\r\n\r\n`).statuses).toEqual([200, 400]);
  });
});

describe("the bounds of a request head", () => {
  const statusesOf = (request: string) => new TestConnection(echoTarget).receive(request).statuses;

  test("128 header fields are allowed, 129 are 431", () => {
    expect(statusesOf(get("/", ...fields(127)))).toEqual([200]);
    expect(statusesOf(get("/", ...fields(128)))).toEqual([431]);
  });

  test("16 KiB are allowed, one byte more is 431", () => {
    expect(statusesOf(headOfBytes(16_384))).toEqual([200]);
    expect(statusesOf(headOfBytes(16_385))).toEqual([431]);
  });

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
