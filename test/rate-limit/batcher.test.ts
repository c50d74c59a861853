import { expect, jest, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import type { Decision } from "../../src/domain/rate-limit.ts";
import { Batcher, type BatcherOptions, type DecisionRequest } from "../../src/rate-limit/valkey/batcher.ts";
import { advance, settle, useFakeTimers } from "../fake-timers.ts";
import { key } from "../subjects.ts";

useFakeTimers();

const LIMITS = { perMinute: 1, perDay: 1 };

function decision(remaining: number): Decision {
  return { outcome: "allowed", limit: 1, remaining, resetAt: 1, retryAfter: 0 };
}

/** A server that replies when the test says so, and a fallback whose decisions have -1 remaining. */
function setUp(options: Partial<BatcherOptions> = {}) {
  const sent: { requests: readonly DecisionRequest[]; reply: () => void; fail: (cause: Error) => void }[] =
    [];
  const causes: string[] = [];
  let counted = 0;
  const batcher = new Batcher({
    send(requests) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly Decision[]>();
      sent.push({ requests, reply: () => resolve(requests.map(() => decision(counted++))), fail: reject });
      return promise;
    },
    fallback: () => decision(-1),
    onFailure: (cause, request) => causes.push(`${request?.subject.id}: ${cause}`),
    maxBatchSize: 3,
    maxConcurrentBatches: 1,
    timeoutMs: 5_000,
    ...options,
  });
  const decide = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, i) => batcher.decide(key(i), LIMITS)));
  return { batcher, sent, causes, decide };
}

const remaining = (decisions: readonly Decision[]) => decisions.map((each) => each.remaining);

test("a single request is sent at once; requests that arrive meanwhile form the next batches, in order", async () => {
  const { sent, decide } = setUp();
  const decisions = decide(6);
  for (let next = 0; next < sent.length; next++) {
    sent[next]?.reply();
    await settle();
  }
  expect(remaining(await decisions)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(sent.map(({ requests }) => requests.map(({ subject }) => subject))).toEqual([
    [key(0)],
    [key(1), key(2), key(3)],
    [key(4), key(5)],
  ]);
});

test("after the first error the fallback decides waiting and new requests", async () => {
  const { batcher, sent, causes, decide } = setUp();
  const decisions = decide(5);
  sent[0]?.fail(new Error("closed"));
  expect(remaining(await decisions)).toEqual([-1, -1, -1, -1, -1]);
  expect(await batcher.decide(key(9), LIMITS)).toEqual(decision(-1));
  expect(causes).toEqual(["0: Error: closed"]);
  expect(sent).toHaveLength(1);
});

test("a batch without a reply within the timeout fails, and a later reply is ignored", async () => {
  const { sent, causes, decide } = setUp({ timeoutMs: 25, maxConcurrentBatches: 2 });
  const decisions = decide(2);
  sent[1]?.reply();
  for (let ms = 0; ms < 24; ms++) await advance(1);
  expect(causes).toEqual([]);
  await advance(1);
  expect(remaining(await decisions)).toEqual([-1, 0]);
  sent[0]?.reply();
  await settle();
  expect(causes).toEqual(["0: Error: no reply within 25 ms"]);
});

test("a burst that takes longer than the timeout succeeds when each batch is in time", async () => {
  const { sent, causes, decide } = setUp({ timeoutMs: 25, maxBatchSize: 1 });
  const decisions = decide(8);
  for (let next = 0; next < 8; next++) {
    await advance(10);
    sent[next]?.reply();
    await settle();
  }
  expect(remaining(await decisions)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(causes).toEqual([]);
});

test("a blocked event loop of our own is no timeout of the server", async () => {
  jest.useRealTimers();
  const { sent, causes, decide } = setUp({ timeoutMs: 25 });
  const decisions = decide(1);
  const end = performance.now() + 100;
  while (performance.now() < end);
  setImmediate(() => sent[0]?.reply());
  expect(remaining(await decisions)).toEqual([0]);
  expect(causes).toEqual([]);
});

test("with 10,000 requests in the queue the next one is rejected, and those before it are decided", async () => {
  const { batcher, sent, causes, decide } = setUp({ maxBatchSize: 1_000 });
  const decisions = decide(10_001);
  const rejected = batcher.decide(key(1), LIMITS).catch((error: unknown) => error);
  expect(await rejected).toEqual(new Unavailable("the queue for Valkey is full (10000 requests)"));
  for (let next = 0; next < sent.length; next++) {
    sent[next]?.reply();
    await settle();
  }
  expect(new Set(remaining(await decisions)).size).toBe(10_001);
  expect(causes).toEqual([]);
});

test("close leaves waiting requests to the fallback and reports no failure", async () => {
  const { batcher, causes, decide } = setUp();
  const decisions = decide(4);
  batcher.close();
  expect(remaining(await decisions)).toEqual([-1, -1, -1, -1]);
  expect(causes).toEqual([]);
});
