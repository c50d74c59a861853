import { RedisClient } from "bun";
import { expect, test } from "bun:test";
import { DEFAULT_BAN } from "../../../src/domain/ban-rules.ts";
import type { Ban, Subject } from "../../../src/domain/rate-limit.ts";
import { rateLimiterConformance, STARTS_AT } from "../../conformance/rate-limiter.ts";
import { FREE } from "../../conformance/rate-limiter-fixture.ts";
import { sendToValkey, valkeyUrl } from "../../../trials/harness/valkey.ts";
import { address, key, textOf } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";
import { openOnValkey, openWithoutFallback } from "../../rate-limit/open-valkey.ts";

const url = await valkeyUrl();

rateLimiterConformance(
  "on Valkey",
  openOnValkey(() => url),
);

test("addresses are counted in process: they take no memory of Valkey, like the check at the start, and do not wait for it", async () => {
  const url = await valkeyUrl();
  const [one, other] = await Promise.all([openWithoutFallback({ url }), openWithoutFallback({ url })]);
  for (let i = 0; i < 250; i++) {
    const decision = one.decide(address(`10.0.0.${i}`), FREE);
    expect(decision).toMatchObject({ outcome: "allowed", remaining: 59 });
  }
  expect(one.decide(address("10.0.0.1"), FREE)).toMatchObject({ remaining: 58 });
  expect(await one.quota(address("10.0.0.1"))).toMatchObject({ minute: { used: 2 } });
  expect(other.decide(address("10.0.0.1"), FREE)).toMatchObject({ remaining: 59 });
  expect(await sendToValkey(url, "DBSIZE")).toBe("0");
  await Promise.all([one.close(), other.close()]);
});

test("every key expires one second after its quota", async () => {
  const url = await valkeyUrl();
  const there = new RedisClient(url);
  const opened = await openOnValkey(() => url)({ ban: DEFAULT_BAN, startsAt: STARTS_AT });
  const { rateLimiter, advance } = opened;
  const expectExpiry = async (subject: Subject, ms: number) => {
    const [name = ""] = await there.keys(`*${textOf(subject)}*`);
    expect(await there.pttl(name)).toBeWithin(ms - 500, ms + 1_001);
  };

  await rateLimiter.decide(key(1), FREE);
  for (let i = 0; i < 2; i++) await rateLimiter.decide(key(2), { perMinute: 1, perDay: 1 });
  for (const id of [1, 2]) await expectExpiry(key(id), 86_400_000);

  advance(86_399_999);
  await rateLimiter.decide(key(1), FREE);
  await expectExpiry(key(1), 60_000);

  advance(86_400_000);
  await rateLimiter.unban(key(1), 0);
  await expectExpiry(key(1), 0);

  for (const name of await there.keys("*")) expect(await there.pttl(name)).toBeGreaterThanOrEqual(0);
  there.close();
  await opened.close();
});

test("a ban that another server decided is reported once, and so is the next one", async () => {
  const clock = new TestClock(STARTS_AT);
  const ban = { ...DEFAULT_BAN, strikes: 1, graceMs: 0 };
  const earlier: [number, Ban][] = [];
  const own: number[] = [];
  const settings = { url, clock, testClock: clock, ban: () => ban, prefix: "earlier-bans:" };
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
