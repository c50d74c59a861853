import { expect, test } from "bun:test";
import { metadataOf } from "../../../src/client/response.ts";
import {
  type ApiResponse,
  indentedJson,
  retryAtOf,
  send,
  windowOf,
} from "../../../src/docs-site/browser/response.ts";

function response(status: number, headers: Record<string, string>): ApiResponse {
  const metadata = metadataOf(new Response(null, { status, headers }), 1);
  return { ...metadata, kind: "response", statusText: "", body: "", durationMs: 1, receivedAt: 1_000 };
}

test("JSON is indented, whatever strings contain, and integers keep their digits", () => {
  const value = { a: { b: [[], {}, "x", null, true, -1.5e-7] }, c: '{"[,:\\"} \u2028' };
  expect(indentedJson(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
  expect(indentedJson('[{"id":9007199254740993},-9223372036854775808]')).toBe(
    '[\n  {\n    "id": 9007199254740993\n  },\n  -9223372036854775808\n]',
  );
});

test("a text that is not JSON is not indented", () => {
  for (const text of ["", "<h1>Bad gateway</h1>", "{", '{"a":01}'])
    expect(indentedJson(text)).toBeUndefined();
});

test("the window closes by the clock of the server", () => {
  const headers = {
    "x-ratelimit-limit": "60",
    "x-ratelimit-remaining": "57",
    "x-ratelimit-reset": "1794733260",
    date: new Date((1_794_733_260 - 42) * 1_000).toUTCString(),
  };
  expect(windowOf(response(200, headers))).toEqual({ limit: 60, remaining: 57, closesAt: 42_000 });
  expect(windowOf(response(200, {}))).toBeUndefined();
});

test("a request that got 429 may be repeated after Retry-After", () => {
  expect(retryAtOf(response(429, { "retry-after": "23" }))).toBe(24_000);
  expect(retryAtOf(response(429, {}))).toBeUndefined();
  expect(retryAtOf(response(503, { "retry-after": "1" }))).toBeUndefined();
});

test("the duration of a response is the time from the request to the end of the body", async () => {
  const delayMs = 30;
  using server = Bun.serve({
    port: 0,
    async fetch(request) {
      await Bun.sleep(delayMs);
      return new Response(`${request.method} ${await request.text()}`);
    },
  });
  const startedAt = performance.now();
  const request = { method: "POST", url: server.url, headers: [], body: "{}", members: [] } as const;
  const outcome = (await send(request, new AbortController().signal)) as ApiResponse;
  expect(outcome).toMatchObject({ kind: "response", status: 200, body: "POST {}", attempts: 1 });
  expect(outcome.durationMs).toBeGreaterThanOrEqual(delayMs - 1);
  expect(outcome.durationMs).toBeLessThanOrEqual(performance.now() - startedAt);
});
