import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { RawClient } from "../http1/raw-client.ts";
import { readStream } from "../http1/reference-parser.ts";
import { RFC_9112_CASES } from "../http1/rfc9112-cases.ts";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const connect = () => new RawClient(Number(new URL(service.url).port));

const MESSAGES: Readonly<Record<number, readonly [code: string, message: string]>> = {
  400: ["malformed_request", "The request is not valid HTTP/1.1."],
  408: ["request_timeout", "The request did not arrive within 30 seconds."],
  414: ["uri_too_long", "The request line must not exceed 8 KiB."],
  431: ["headers_too_large", "The request line and headers must not exceed 16 KiB and 128 headers."],
  501: ["not_implemented", "Transfer-Encoding must be chunked. CONNECT is not supported."],
  505: ["http_version_not_supported", "The HTTP version is not supported. Use HTTP/1.1."],
};

/** The cases that are rejected before the API sees a request. */
const rejections = RFC_9112_CASES.flatMap(({ section, name, bytes }) => {
  const [headAlone = ""] = /^[^]*?\r\n\r\n/.exec(bytes) ?? [bytes];
  const [status] = readStream(headAlone);
  return typeof status === "number" && status !== 413 ? [{ section, name, bytes, status }] : [];
});

test("every request head that is not valid HTTP/1.1 gets the error of its status", async () => {
  const differences: unknown[] = [];
  for (const { section, name, bytes, status } of rejections) {
    const client = connect();
    await client.send(bytes);
    await client.closed;
    const [code, message] = MESSAGES[status] ?? [];
    const expected = [{ status, body: JSON.stringify({ code, message, status }) }];
    const responses = client.responses.map((response) => ({ status: response.status, body: response.body }));
    if (!Bun.deepEquals(responses, expected)) differences.push({ section, name, responses, expected });
  }
  expect(differences).toEqual([]);
  expect(new Set(rejections.map(({ status }) => status))).toEqual(new Set([400, 414, 431, 501, 505]));
}, 20_000);

describe("a protocol error", () => {
  test("closes the connection, is JSON, and has a request id, but no rate limit headers", async () => {
    const client = connect();
    await client.send(`GET /v1/pets HTTP/1.1\r\nAuthorization: Bearer ${service.key}\r\n\r\n`);
    await client.closed;
    const headers = Object.fromEntries(client.responses[0]?.headers ?? []);
    expect(Object.keys(headers).toSorted()).toEqual([
      "connection",
      "content-length",
      "content-type",
      "date",
      "x-content-type-options",
      "x-request-id",
    ]);
    expect(headers).toMatchObject({ connection: "close", "content-type": "application/json" });
  });

  test("does not count against the rate limits", async () => {
    const remaining = async () =>
      (await service.call({ path: "/pets" })).headers.get("x-ratelimit-remaining");
    const before = Number(await remaining());
    const client = connect();
    await client.send(`GET /v1/pets HTTP/1.1\r\nHost:\r\nAuthorization: Bearer ${service.key}\r\n\r\n`);
    await client.closed;
    expect(Number(await remaining())).toBe(before - 1);
  });
});

test("OPTIONS * 204: the methods of the server, without a key; it counts like a page", async () => {
  const client = connect();
  await client.send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
  await client.receive(1);
  expect(client.responses).toMatchObject([{ status: 204, body: "" }]);
  expect(client.responses[0]?.headers.get("allow")).toBe("GET, HEAD, POST, PATCH, OPTIONS");
  expect(client.responses[0]?.headers.has("content-length")).toBe(false);
  expect(client.responses[0]?.headers.get("x-ratelimit-limit")).toBe("300");
  client.destroy();
});
