import { RedisClient } from "bun";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { DAY_MS, DEFAULT_BAN, MINUTE_MS, type Subject } from "../../src/domain/rate-limit.ts";
import { limiterConformance, type LimiterUnderTest, STARTS_AT } from "../conformance/limiter.ts";
import { valkeyUrl } from "../../harness/valkey.ts";
import { limiterAgreesWithModel } from "./agreement.ts";
import { openOnMaps } from "./opening.ts";
import { openOnValkey, openPatient } from "./valkey-opening.ts";

let url: string;
let admin: RedisClient;
beforeAll(async () => {
  url = await valkeyUrl();
  admin = new RedisClient(url);
});
afterAll(() => admin.close());

const open = openOnValkey(() => url);
const FREE = { perMinute: 60, perDay: 1_000 };

limiterConformance("on Valkey", open);

test("the script and the model never differ, whatever happens to whom and when", async () => {
  await limiterAgreesWithModel(open, 200);
}, 60_000);

/** Instants at which two things coincide: random histories seldom come upon them. */
const COINCIDENCES: Record<string, (life: LimiterUnderTest) => Promise<unknown[]>> = {
  "both windows close at once": async ({ rateLimiter, advance }) => {
    const limits = { perMinute: 1, perDay: 2 };
    const seen = [await rateLimiter.decide("key:1", limits)];
    advance(DAY_MS - MINUTE_MS);
    for (let i = 0; i < 4; i++, advance(1_001)) seen.push(await rateLimiter.decide("key:1", limits));
    return [...seen, await rateLimiter.usage("key:1")];
  },
  "a unban at the very instant of the ban": async ({ rateLimiter, advance, now }) => {
    const limits = { perMinute: 1, perDay: 9 };
    for (let i = 0; i < 2; i++) await rateLimiter.decide("key:1", limits);
    advance(DEFAULT_BAN.graceMs + 1);
    for (let i = 0; i < DEFAULT_BAN.strikes; i++) await rateLimiter.decide("key:1", limits);
    const seen = [await rateLimiter.usage("key:1")];
    await rateLimiter.unban("key:1", now());
    return [...seen, await rateLimiter.usage("key:1"), await rateLimiter.decide("key:1", limits)];
  },
  "a clock set back to between a window's opening and the ban": async ({ rateLimiter, advance }) => {
    const limits = { perMinute: 1, perDay: 9 };
    for (let i = 0; i < 2; i++) await rateLimiter.decide("key:1", limits);
    advance(10_000);
    for (let i = 0; i < DEFAULT_BAN.strikes; i++) await rateLimiter.decide("key:1", limits);
    advance(-5_000);
    const seen = [await rateLimiter.decide("key:1", limits)];
    advance(20_000);
    return [...seen, await rateLimiter.decide("key:1", limits), await rateLimiter.usage("key:1")];
  },
};

test.each(Object.entries(COINCIDENCES))("Valkey and memory answer alike: %s", async (_, live) => {
  const lives = await Promise.all(
    [open, openOnMaps].map((each) => each({ ban: DEFAULT_BAN, startsAt: STARTS_AT })),
  );
  const [onValkey, inMemory] = await Promise.all(lives.map(live));
  expect(onValkey).toEqual(inMemory);
  await Promise.all(lives.map((each) => each.close()));
});

test("of 2,000 requests at once over four instances exactly 60 are allowed", async () => {
  const prefix = "four:";
  const instances = await Promise.all(Array.from({ length: 4 }, () => openPatient({ url, prefix })));
  const asked = instances.flatMap((each) => Array.from({ length: 500 }, () => each.decide("key:1", FREE)));
  const decisions = await Promise.all(asked);
  const left = decisions.filter(({ outcome }) => outcome === "allowed").map(({ remaining }) => remaining);
  expect(left.toSorted((a, b) => b - a)).toEqual(Array.from({ length: 60 }, (_, i) => 59 - i));
  await Promise.all(instances.map((each) => each.close()));
});

test("a ban by one instance holds on all, and a unban by another lifts it", async () => {
  const ban = { strikes: 3, graceMs: 0, lengthMs: 60_000 };
  const settings = { url, ban, prefix: "ban:" };
  const [one, other] = await Promise.all([openPatient(settings), openPatient(settings)]);
  const limits = { perMinute: 1, perDay: 9 };
  while ((await one.decide("key:1", limits)).outcome !== "banned");
  expect(await other.decide("key:1", limits)).toMatchObject({ outcome: "banned", retryAfter: 60 });
  await other.unban("key:1", (await one.usage("key:1"))?.bannedAt ?? 0);
  expect(await one.decide("key:1", limits)).toMatchObject({ outcome: "limited" });
  await Promise.all([one.close(), other.close()]);
});

test("SCRIPT FLUSH under way costs nobody a request", async () => {
  const rateLimiter = await openPatient({ url, prefix: "flush:" });
  const allowed: number[] = [];
  for (let i = 0; i < 30; i++) {
    if (i % 3 === 0) await admin.send("SCRIPT", ["FLUSH"]);
    const decisions = await Promise.all([
      rateLimiter.decide("key:1", FREE),
      rateLimiter.decide("key:1", FREE),
    ]);
    allowed.push(...decisions.map(({ remaining }) => remaining));
  }
  expect(allowed).toEqual(Array.from({ length: 60 }, (_, i) => 59 - i));
  await rateLimiter.close();
});

test("after FLUSHDB everybody begins anew", async () => {
  const place = await valkeyUrl();
  const rateLimiter = await openPatient({ url: place });
  await rateLimiter.decide("key:1", FREE);
  const there = new RedisClient(place);
  await there.send("FLUSHDB", []);
  there.close();
  expect(await rateLimiter.usage("key:1")).toBeUndefined();
  expect(await rateLimiter.decide("key:1", FREE)).toMatchObject({ remaining: 59 });
  await rateLimiter.close();
});

test("every key expires: a second after nothing in it matters any more", async () => {
  const place = await valkeyUrl();
  const there = new RedisClient(place);
  const life = await openOnValkey(() => place)({ ban: DEFAULT_BAN, startsAt: STARTS_AT });
  const { rateLimiter, advance, now } = life;
  const expiries = async () => {
    const keys = await there.keys("*");
    return Object.fromEntries(
      await Promise.all(keys.map(async (key) => [key, await there.pttl(key)] as const)),
    );
  };
  const expectExpiry = async (subject: Subject, ms: number) => {
    const [found = -1] = Object.entries(await expiries()).flatMap(([key, ttl]) =>
      key.includes(subject) ? [ttl] : [],
    );
    expect(found).toBeWithin(ms - 500, ms + 1_001);
  };

  await rateLimiter.decide("key:1", FREE);
  await rateLimiter.decide("address:192.0.2.1", { perMinute: 1, perDay: 1 });
  await rateLimiter.decide("address:192.0.2.1", { perMinute: 1, perDay: 1 });
  await expectExpiry("key:1", DAY_MS);
  await expectExpiry("address:192.0.2.1", DAY_MS);

  advance(DAY_MS - 1);
  await rateLimiter.decide("key:1", FREE);
  await expectExpiry("key:1", MINUTE_MS);

  advance(DAY_MS);
  await rateLimiter.unban("key:1", now());
  await expectExpiry("key:1", 0);

  expect(Object.values(await expiries()).every((ttl) => ttl >= 0)).toBe(true);
  there.close();
  await life.close();
});

test("nothing that was tried at the start is left behind", async () => {
  const place = await valkeyUrl();
  const rateLimiter = await openPatient({ url: place });
  const there = new RedisClient(place);
  expect(await there.keys("*")).toEqual([]);
  there.close();
  await rateLimiter.close();
});
