import { expect, test } from "bun:test";
import type { Decision } from "../../src/domain/rate-limit.ts";
import { type Asked, Batcher, type BatcherOptions } from "../../src/rate-limit/valkey/batcher.ts";

const LIMITS = { perMinute: 1, perDay: 1 };

function decision(remaining: number): Decision {
  return { outcome: "allowed", limit: 1, remaining, resetAt: 1, retryAfter: 0 };
}

/** A server that answers only when told to, and somebody who answers -1 in its stead. */
function laneTo(options: Partial<BatcherOptions> = {}) {
  const sent: { batch: readonly Asked[]; reply: () => void; fail: (cause: Error) => void }[] = [];
  const causes: string[] = [];
  let counted = 0;
  const batcher = new Batcher({
    send(batch) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly Decision[]>();
      sent.push({ batch, reply: () => resolve(batch.map(() => decision(counted++))), fail: reject });
      return promise;
    },
    instead: () => decision(-1),
    onBreak: (cause, asked) => causes.push(`${asked?.subject}: ${cause}`),
    maxBatch: 3,
    maxFlights: 1,
    silenceMs: 5_000,
    ...options,
  });
  const decide = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, i) => batcher.decide(`key:${i}`, LIMITS)));
  return { batcher, sent, causes, decide };
}

const remaining = (decisions: readonly Decision[]) => decisions.map((each) => each.remaining);

test("a lone request leaves at once; what comes meanwhile makes up the next batches, in order", async () => {
  const { sent, decide } = laneTo();
  const asked = decide(6);
  for (let next = 0; next < sent.length; next++) {
    sent[next]?.reply();
    await Bun.sleep(0);
  }
  expect(remaining(await asked)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(sent.map(({ batch }) => batch.map(({ subject }) => subject))).toEqual([
    ["key:0"],
    ["key:1", "key:2", "key:3"],
    ["key:4", "key:5"],
  ]);
});

test("the first fault breaks it: all that waits is answered instead, and so is all that comes", async () => {
  const { batcher, sent, causes, decide } = laneTo();
  const asked = decide(5);
  sent[0]?.fail(new Error("gone"));
  expect(remaining(await asked)).toEqual([-1, -1, -1, -1, -1]);
  expect(await batcher.decide("key:9", LIMITS)).toEqual(decision(-1));
  expect(causes).toEqual(["key:0: Error: gone"]);
  expect(sent).toHaveLength(1);
});

test("silence breaks it, and answers that come later are nobody's", async () => {
  const { sent, causes, decide } = laneTo({ silenceMs: 25, maxFlights: 2 });
  const asked = decide(2);
  sent[1]?.reply();
  const start = performance.now();
  expect(remaining(await asked)).toEqual([-1, 0]);
  expect(performance.now() - start).toBeGreaterThan(15);
  sent[0]?.reply();
  expect(causes).toEqual(["key:0: Error: no answer within 25 ms"]);
});

test("a server that answers in time is never silent, however long a burst takes it", async () => {
  const { sent, causes, decide } = laneTo({ silenceMs: 25, maxBatch: 1 });
  const asked = decide(8);
  for (let next = 0; next < 8; next++) {
    await Bun.sleep(10);
    sent[next]?.reply();
    await Bun.sleep(0);
  }
  expect(remaining(await asked)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(causes).toEqual([]);
});

test("a queue beyond all measure breaks it", async () => {
  const { causes, decide } = laneTo();
  expect(new Set(remaining(await decide(10_002)))).toEqual(new Set([-1]));
  expect(causes).toEqual(["undefined: Error: too many requests are waiting"]);
});

test("closed, it leaves what waits to others and tells nobody", async () => {
  const { batcher, causes, decide } = laneTo();
  const asked = decide(4);
  batcher.close();
  expect(remaining(await asked)).toEqual([-1, -1, -1, -1]);
  expect(causes).toEqual([]);
});
