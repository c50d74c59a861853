import { expect, test } from "bun:test";
import type { Decision } from "../../src/domain/rate-limit.ts";
import { RejectionCache } from "../../src/rate-limit/valkey/valkey-rate-limiter.ts";
import { key } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";

const LIMITS = { perMinute: 60, perDay: 1_000 };
const LIMITED: Decision = { outcome: "limited", limit: 60, remaining: 0, resetAt: 60, retryAfter: 60 };
const BANNED: Decision = { outcome: "banned", limit: 60, remaining: 0, resetAt: 300, retryAfter: 300 };

function setUp() {
  const clock = new TestClock(0);
  const cache = new RejectionCache(clock);
  const find = (id: number, limits = LIMITS) => cache.find({ subject: key(id), limits });
  const add = (id: number, decision: Decision, agoMs = 0) => {
    const ban = decision.outcome === "banned" ? { agoMs } : undefined;
    cache.add({ subject: key(id), limits: LIMITS }, decision, ban);
  };
  return { clock, cache, find, add };
}

test("a rejection holds until its retryAfter is over", () => {
  const { clock, find, add } = setUp();
  add(1, LIMITED);
  expect(find(1)).toEqual(LIMITED);
  clock.time = 59_001;
  expect(find(1)).toEqual({ ...LIMITED, retryAfter: 1 });
  clock.time = 60_000;
  expect(find(1)).toBeUndefined();
  expect(find(2)).toBeUndefined();
});

test("new limits end a rejection by the old ones, and no ban", () => {
  const { find, add } = setUp();
  add(1, LIMITED);
  add(2, BANNED);
  const limits = { perMinute: 300, perDay: 10_000 };
  expect(find(1, limits)).toBeUndefined();
  expect(find(2, limits)).toEqual(BANNED);
});

test("an unban ends a ban that may have begun by then, and no other rejection", () => {
  const { clock, cache, find, add } = setUp();
  clock.time = 10_000;
  add(1, BANNED);
  add(2, LIMITED);
  cache.unban(key(1), 1_001);
  expect(find(1)).toEqual(BANNED);
  cache.unban(key(1), 1_000);
  cache.unban(key(2), 1_000);
  expect(find(1)).toBeUndefined();
  expect(find(2)).toEqual(LIMITED);
});

test("when a ban began does not depend on how long it is", () => {
  const { clock, cache, find, add } = setUp();
  clock.time = 100_000;
  add(1, { ...BANNED, resetAt: 2_400, retryAfter: 2_350 }, 50_000);
  cache.unban(key(1), 51_001);
  expect(find(1)).toMatchObject({ outcome: "banned", retryAfter: 2_350 });
  cache.unban(key(1), 51_000);
  expect(find(1)).toBeUndefined();
});

test("the last 10,000 rejections are cached", () => {
  const { find, add } = setUp();
  for (let id = 0; id < 10_003; id++) add(id, LIMITED);
  const found = Array.from({ length: 10_003 }, (_, id) => find(id)).filter((each) => each !== undefined);
  expect(found).toHaveLength(10_000);
  expect([find(2), find(3)]).toEqual([undefined, LIMITED]);
});
