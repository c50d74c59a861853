import { afterAll, expect, test } from "bun:test";
import { heapStats } from "bun:jsc";
import * as fc from "fast-check";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import { decide, newQuota, type Subject, type Quota } from "../../src/domain/rate-limit.ts";
import { MemoryRateLimiter } from "../../src/rate-limit/memory-rate-limiter.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import { rateLimiterConformance, STARTS_AT } from "../conformance/rate-limiter.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { address, key, textOf } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";
import { MapQuotaStore } from "./map-quota-store.ts";
import { openOn, openOnMaps } from "./open-memory.ts";

const { path: pathOf, remove } = disposableDirectory();
afterAll(remove);

let files = 0;
const openOnFiles = openOn(() => {
  const path = pathOf(`${files++}.db`);
  return () => openQuotaStore(path);
});

test("the quota of an address survives a restart", async () => {
  const opened = await openOnFiles({ ban: DEFAULT_BAN, startsAt: STARTS_AT });
  const limits = { perMinute: 60, perDay: 1_000 };
  for (let i = 0; i < 7; i++) await opened.rateLimiter.decide(address("192.0.2.7"), limits);
  const before = await opened.rateLimiter.quota(address("192.0.2.7"));
  await opened.restart();
  expect(await opened.rateLimiter.quota(address("192.0.2.7"))).toEqual(before);
  expect(await opened.rateLimiter.decide(address("192.0.2.7"), limits)).toMatchObject({ remaining: 52 });
  await opened.close();
});

const SUBJECTS: Record<string, (i: number) => Subject> = { keys: key, addresses: (i) => address(`${i}`) };

test("decides as the domain does, for any requests of any subjects, also after days", () => {
  const subject = fc
    .tuple(fc.constantFrom(...Object.values(SUBJECTS)), fc.nat(50))
    .map(([subjectOf, i]) => subjectOf(i));
  const step = fc.oneof({ weight: 100, arbitrary: subject }, fc.constant("a day passes"));
  const limits = { perMinute: 2, perDay: 3 };
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400, size: "max" }), (steps) => {
      const clock = new TestClock(STARTS_AT);
      const rateLimiter = new MemoryRateLimiter({ clock, ban: () => DEFAULT_BAN, maxAddresses: 51 });
      const quotas = new Map<string, Quota>();
      for (const each of steps) {
        if (typeof each === "string") {
          clock.advance(86_400_000);
          continue;
        }
        const quota = quotas.get(textOf(each)) ?? newQuota();
        quotas.set(textOf(each), quota);
        const rules = each.kind === "key" ? DEFAULT_BAN : undefined;
        expect(rateLimiter.decide(each, limits)).toEqual(decide(quota, limits, clock.now(), rules));
      }
      void rateLimiter.close();
    }),
    { numRuns: 100 },
  );
});

test.each(Object.entries(SUBJECTS))("the greatest numbers of %s are kept", (name, subjectOf) => {
  const now = STARTS_AT;
  const banned: Quota = {
    minute: { openedAt: now - 9, used: 1e9, graceBeganAt: now - 8, strikes: 1e6 },
    day: { openedAt: now - 7, used: 1e9 - 1, graceBeganAt: now - 6, strikes: 1e6 - 1 },
    bannedAt: now - 5,
    bannedUntil: now + 4,
    lastBanMs: 0,
  };
  const after = { ...banned, bannedAt: -1, bannedUntil: now - 3, lastBanMs: 2 };
  const quotaStore = new MapQuotaStore();
  quotaStore.save([banned, after].map((quota, i) => [subjectOf(i), quota]));
  const rateLimiter = new MemoryRateLimiter({
    clock: new TestClock(now),
    ban: () => DEFAULT_BAN,
    quotaStore,
  });
  expect([0, 1].map((i) => rateLimiter.quota(subjectOf(i)))).toEqual([banned, after]);
  expect(rateLimiter.restoredBans).toEqual(name === "keys" ? [0, 1] : []);
});

test.each([
  [
    "a shorter maximum has ended the one before",
    { bannedAt: STARTS_AT - 5_000, bannedUntil: STARTS_AT + 5_000, lastBanMs: 0 },
  ],
  [
    "the one before has ended by a clock that was set back",
    { bannedAt: -1, bannedUntil: STARTS_AT + 5_000, lastBanMs: 1_000 },
  ],
])("a ban that begins where %s is a new ban", (_, ban) => {
  const now = STARTS_AT;
  const quotaStore = new MapQuotaStore();
  const used = { openedAt: now - 9, used: 1, graceBeganAt: now - 8, strikes: 1 };
  quotaStore.save([[key(1), { minute: used, day: used, ...ban }]]);
  const bans: number[] = [];
  const rateLimiter = new MemoryRateLimiter({
    clock: new TestClock(now),
    ban: () => ({ strikes: 1, graceMs: 0, lengthMs: 1_000, maxLengthMs: 1_000 }),
    quotaStore,
    onBan: (id) => bans.push(id),
  });
  expect(rateLimiter.decide(key(1), { perMinute: 1, perDay: 1 })).toMatchObject({ outcome: "banned" });
  expect(bans).toEqual([1]);
});

test("a step of the clock moves a window, and the first to look at it sees that", () => {
  const clock = new TestClock(STARTS_AT);
  const rateLimiter = new MemoryRateLimiter({ clock, ban: () => DEFAULT_BAN });
  const limits = { perMinute: 1, perDay: 1 };
  for (const look of ["peek", "decide"] as const) {
    rateLimiter.decide(address(look), limits);
    clock.step(172_800_000);
    expect(rateLimiter[look](address(look), limits)).toMatchObject({
      outcome: "limited",
      retryAfterSeconds: 86_400,
    });
  }
});

test("an address has at most 63 characters", () => {
  const rateLimiter = new MemoryRateLimiter({ clock: new TestClock(0), ban: () => DEFAULT_BAN });
  const count = (id: string) => rateLimiter.decide(address(id), { perMinute: 1, perDay: 1 });
  expect(count("x".repeat(63))).toMatchObject({ outcome: "allowed" });
  expect(() => count("x".repeat(64))).toThrow(RangeError);
});

rateLimiterConformance("in process", openOnMaps);
rateLimiterConformance("in process, on SQLite", openOnFiles);

test("a subject is one object in memory", () => {
  const subjects = 20_000;
  const limiter = new MemoryRateLimiter({ clock: new TestClock(STARTS_AT), ban: () => DEFAULT_BAN });
  const before = countObjects();
  for (let i = 0; i < subjects; i++) {
    limiter.decide(key(i), { perMinute: 2, perDay: 2 });
    limiter.decide(address(`10.0.0.${i}`), { perMinute: 2, perDay: 2 });
  }
  expect(countObjects() - before).toBeWithin(1.9 * subjects, 2.4 * subjects);
  expect(limiter.peek(key(0), { perMinute: 2, perDay: 2 }).remaining).toBe(1);
});

function countObjects(): number {
  Bun.gc(true);
  return heapStats().objectTypeCounts.Object ?? 0;
}
