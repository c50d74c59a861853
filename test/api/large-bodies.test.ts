import { expect, test } from "bun:test";
import { type OperationCall, dispatch, MAX_LARGE_BODIES } from "../../src/api/dispatch.ts";
import { Overloaded, Unavailable } from "../../src/api/errors.ts";
import { object, text } from "../../src/api/schema.ts";
import { respond } from "../http1/test-connection.ts";

const TIMEOUT_MS = 20;
const BODY = Buffer.from(JSON.stringify({ name: "Rex", unknown: "x".repeat(3_000) }));

const CALL: OperationCall = {
  operation: {
    method: "POST",
    path: "/pets",
    tag: "pets",
    summary: "",
    description: "",
    body: object({ name: text(10) }),
    success: { status: 201, description: "" },
  },
  request: {
    method: "POST",
    path: "/pets",
    query: "",
    headers: { get: (name: string) => (name === "content-type" ? "application/json" : null) } as never,
    remoteAddress: "",
    clientAddress: "",
    body: () => BODY,
    markAuthenticated() {},
  },
  requestId: "",
  identifier: "",
  hasWaited: false,
};

/** Sends one request, and returns what it ended with. */
function send(counts: { handled: number }, options: { handleMs?: number; timeoutMs?: number } = {}) {
  const { handleMs = 0, timeoutMs = 60_000 } = options;
  const errors: unknown[] = [];
  const response = dispatch(CALL, {
    maxBodyBytes: () => 16_384,
    reauthenticate: (call) => call,
    callHandler: () => {
      const until = performance.now() + handleMs;
      while (performance.now() < until);
      return ++counts.handled;
    },
    succeed: () => respond("created", 201),
    reject: ({ message }) => respond(message, 400),
    fail: (error) => {
      errors.push(error);
      return respond("failed", 503);
    },
    timeoutMs,
  });
  return Promise.resolve(response).then(({ status }) => ({ status, errors }));
}

test("at most 1,000 large bodies wait to be parsed: the next request is 503, and those that wait are handled", async () => {
  const counts = { handled: 0 };
  expect(MAX_LARGE_BODIES).toBe(1_000);
  const waiting = Array.from({ length: 1_000 }, () => send(counts));
  expect(await send(counts)).toEqual({ status: 503, errors: [expect.any(Overloaded)] });
  const statuses = (await Promise.all(waiting)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([201]));
  expect((await send(counts)).status).toBe(201);
  expect(counts.handled).toBe(1_001);
});

test("a large body that waits for longer than the timeout of its request is 503, and nothing is done", async () => {
  const counts = { handled: 0 };
  const slow = send(counts, { handleMs: 2 * TIMEOUT_MS });
  const late = send(counts, { timeoutMs: TIMEOUT_MS });
  expect(await late).toEqual({ status: 503, errors: [expect.any(Unavailable)] });
  expect((await slow).status).toBe(201);
  expect((await send(counts)).status).toBe(201);
  expect(counts.handled).toBe(2);
});
