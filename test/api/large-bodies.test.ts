import { expect, test } from "bun:test";
import { type OperationCall, dispatch } from "../../src/api/dispatch.ts";
import { MAX_LARGE_BODIES } from "../../src/api/large-bodies.ts";
import { Overloaded, Unavailable } from "../../src/api/errors.ts";
import { object, text } from "../../src/api/schema.ts";

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
  maxBodyBytes: 16_384,
  hasWaited: false,
};

/** Sends one request, and returns what it ended with. */
async function send(counts: { handled: number }, options: { handleMs?: number; timeoutMs?: number } = {}) {
  const { handleMs = 0, timeoutMs = 60_000 } = options;
  try {
    return await dispatch(CALL, {
      reauthenticate: async (call) => call,
      handle() {
        const until = performance.now() + handleMs;
        while (performance.now() < until);
        counts.handled++;
        return "handled";
      },
      timeoutMs,
    });
  } catch (error) {
    return error;
  }
}

test("at most 1,000 large bodies wait to be parsed: the next request is 503, and those that wait are handled", async () => {
  const counts = { handled: 0 };
  expect(MAX_LARGE_BODIES).toBe(1_000);
  const waiting = Array.from({ length: 1_000 }, () => send(counts));
  expect(await send(counts)).toBeInstanceOf(Overloaded);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["handled"]));
  expect(await send(counts)).toBe("handled");
  expect(counts.handled).toBe(1_001);
});

test("a large body that waits for longer than the timeout of its request is 503, and nothing is done", async () => {
  const counts = { handled: 0 };
  const slow = send(counts, { handleMs: 2 * TIMEOUT_MS });
  const late = send(counts, { timeoutMs: TIMEOUT_MS });
  expect(await late).toBeInstanceOf(Unavailable);
  expect(await slow).toBe("handled");
  expect(await send(counts)).toBe("handled");
  expect(counts.handled).toBe(2);
});
