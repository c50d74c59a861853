import { RedisClient } from "bun";
import { beforeAll, expect, test } from "bun:test";
import { Unavailable } from "../../../src/api/errors.ts";
import { type Ban, DEFAULT_BAN, type Subject } from "../../../src/domain/rate-limit.ts";
import { rateLimiterConformance, STARTS_AT } from "../../conformance/rate-limiter.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { address, key, textOf } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";
import { openOnMaps } from "../../rate-limit/open-memory.ts";
import { openOnValkey, openWithoutFallback } from "../../rate-limit/open-valkey.ts";
import { compareInHistories } from "./random-histories.ts";

let url: string;
beforeAll(async () => void (url = await valkeyUrl()));

const open = openOnValkey(() => url);
const FREE = { perMinute: 60, perDay: 1_000 };

rateLimiterConformance("on Valkey", open);

test("Valkey and memory decide alike in random histories", async () => {
  await compareInHistories([open, openOnMaps], 100);
});

/** Both windows close, and an unban and a ban come, at the same time: random histories seldom have that. */
test("Valkey and memory decide alike when two things happen at the same time", async () => {
  const seen = [open, openOnMaps].map(async (each) => {
    const { rateLimiter, advance, close } = await each({ ban: DEFAULT_BAN, startsAt: STARTS_AT });
    const limits = { perMinute: 1, perDay: 2 };
    const decisions: unknown[] = [await rateLimiter.decide(key(1), limits)];
    advance(86_340_000);
    for (let i = 0; i < 4; i++, advance(1_001)) decisions.push(await rateLimiter.decide(key(1), limits));
    for (let i = 0; i < 10; i++) decisions.push(await rateLimiter.decide(key(1), limits));
    await rateLimiter.unban(key(1), 0);
    decisions.push(await rateLimiter.usage(key(1)));
    advance(-500);
    decisions.push(await rateLimiter.decide(key(1), limits));
    await close();
    return decisions;
  });
  expect(await seen[0]).toEqual(await seen[1]);
});

test("a ban by one instance holds on all, and an unban by another ends it", async () => {
  const ban = { strikes: 3, graceMs: 0, lengthMs: 60_000, maxLengthMs: 60_000 };
  const clock = new TestClock();
  const settings = { url, ban, clock, testClock: clock, prefix: "ban:" };
  const [one, other] = await Promise.all([openWithoutFallback(settings), openWithoutFallback(settings)]);
  const limits = { perMinute: 1, perDay: 9 };
  while ((await one.decide(key(1), limits)).outcome !== "banned") clock.advance(1);
  expect(await other.decide(key(1), limits)).toMatchObject({ outcome: "banned", retryAfter: 60 });
  await other.unban(key(1), 0);
  expect(await one.decide(key(1), limits)).toMatchObject({ outcome: "limited" });
  await Promise.all([one.close(), other.close()]);
});

test("addresses are counted in process: they take no memory of Valkey, like the check at the start, and do not wait for it", async () => {
  const url = await valkeyUrl();
  const [one, other] = await Promise.all([openWithoutFallback({ url }), openWithoutFallback({ url })]);
  for (let i = 0; i < 250; i++) {
    const decision = one.decide(address(`10.0.0.${i}`), FREE);
    expect(decision).toMatchObject({ outcome: "allowed", remaining: 59 });
  }
  expect(one.decide(address("10.0.0.1"), FREE)).toMatchObject({ remaining: 58 });
  expect(await one.usage(address("10.0.0.1"))).toMatchObject({ minute: { used: 2 } });
  expect(other.decide(address("10.0.0.1"), FREE)).toMatchObject({ remaining: 59 });
  const there = new RedisClient(url);
  expect(await there.send("DBSIZE", [])).toBe(0);
  there.close();
  await Promise.all([one.close(), other.close()]);
});

test("of 13,000 requests at once on two instances 60 are allowed, and Valkey does not count as unavailable", async () => {
  const settings = { url, prefix: "flood:" };
  const instances = await Promise.all([openWithoutFallback(settings), openWithoutFallback(settings)]);
  const outcomes = await Promise.all(
    instances.flatMap((each) =>
      Array.from({ length: 13_000 }, async () => {
        try {
          return (await each.decide(key(1), FREE)).outcome;
        } catch (error) {
          return error instanceof Unavailable ? "unavailable" : "error";
        }
      }),
    ),
  );
  const count = (outcome: string) => outcomes.filter((each) => each === outcome).length;
  expect([count("allowed"), count("error")]).toEqual([60, 0]);
  expect(count("unavailable")).toBeWithin(2 * 2_900, 2 * 3_001);
  await Promise.all(instances.map((each) => each.close()));
});

test("after FLUSHDB all counts start at 0", async () => {
  const url = await valkeyUrl();
  const rateLimiter = await openWithoutFallback({ url });
  await rateLimiter.decide(key(1), FREE);
  const there = new RedisClient(url);
  await there.send("FLUSHDB", []);
  there.close();
  expect(await rateLimiter.usage(key(1))).toBeUndefined();
  expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ remaining: 59 });
  await rateLimiter.close();
});

test("every key expires one second after its usage", async () => {
  const url = await valkeyUrl();
  const there = new RedisClient(url);
  const opened = await openOnValkey(() => url)({ ban: DEFAULT_BAN, startsAt: STARTS_AT });
  const { rateLimiter, advance } = opened;
  const expiries = async () => {
    const keys = await there.keys("*");
    return Object.fromEntries(
      await Promise.all(keys.map(async (name) => [name, await there.pttl(name)] as const)),
    );
  };
  const expectExpiry = async (subject: Subject, ms: number) => {
    const [found = -1] = Object.entries(await expiries()).flatMap(([name, ttl]) =>
      name.includes(textOf(subject)) ? [ttl] : [],
    );
    expect(found).toBeWithin(ms - 500, ms + 1_001);
  };

  await rateLimiter.decide(key(1), FREE);
  await rateLimiter.decide(key(2), { perMinute: 1, perDay: 1 });
  await rateLimiter.decide(key(2), { perMinute: 1, perDay: 1 });
  await expectExpiry(key(1), 86_400_000);
  await expectExpiry(key(2), 86_400_000);

  advance(86_399_999);
  await rateLimiter.decide(key(1), FREE);
  await expectExpiry(key(1), 60_000);

  advance(86_400_000);
  await rateLimiter.unban(key(1), 0);
  await expectExpiry(key(1), 0);

  expect(Object.values(await expiries()).every((ttl) => ttl >= 0)).toBe(true);
  there.close();
  await opened.close();
});

test("a ban that another server decided is reported once, and so is the next one", async () => {
  const clock = new TestClock(STARTS_AT);
  const ban = { ...DEFAULT_BAN, strikes: 1, graceMs: 0 };
  const earlier: [number, Ban][] = [];
  const own: number[] = [];
  const settings = { url, clock, testClock: clock, ban, prefix: "earlier-bans:" };
  const one = await openWithoutFallback({ ...settings, onBan: (keyId) => void own.push(keyId) });
  const other = await openWithoutFallback({
    ...settings,
    onBan: (keyId) => void own.push(-keyId),
    onEarlierBan: (keyId, times) => void earlier.push([keyId, times]),
  });
  const limits = { perMinute: 1, perDay: 1 };
  const getBanned = async () => {
    for (let i = 0; i < 3; i++, clock.advance(1)) await one.decide(key(7), limits);
  };
  await getBanned();
  expect(earlier).toEqual([]);
  for (let i = 0; i < 3; i++) expect(await other.decide(key(7), limits)).toMatchObject({ outcome: "banned" });
  const bannedAt = STARTS_AT + 2;
  expect(earlier).toEqual([[7, { bannedAt, bannedUntil: bannedAt + 300_000 }]]);
  clock.advance(300_000);
  await getBanned();
  await other.decide(key(7), limits);
  expect(earlier).toHaveLength(2);
  expect(own).toEqual([7, 7]);
  await one.close();
  await other.close();
});
