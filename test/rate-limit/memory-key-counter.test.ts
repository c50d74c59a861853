import { expect, test } from "bun:test";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import { MemoryKeyCounter } from "../../src/rate-limit/memory/memory-key-counter.ts";
import { TestClock } from "../test-clock.ts";

const FREE = { perMinute: 60, perDay: 1_000 };

test("50,000 keys are counted; the one without a request for the longest time is forgotten first", async () => {
  const counter = new MemoryKeyCounter({ clock: new TestClock(), ban: () => DEFAULT_BAN });
  const count = (keyId: number) => counter.decide({ keyId, limits: FREE });
  for (let keyId = 0; keyId < 50_000; keyId++) await count(keyId);
  await count(0);
  await count(50_000);
  expect(await counter.quota(0)).toMatchObject({ minute: { used: 2 } });
  expect(await counter.quota(1)).toBeUndefined();
  expect(await counter.quota(2)).toMatchObject({ minute: { used: 1 } });
});

test("a key is banned, unbanned and forgotten as the rules say", async () => {
  const clock = new TestClock();
  const bans: unknown[] = [];
  const rules = { strikes: 1, graceMs: 0, lengthMs: 300_000, maxLengthMs: 300_000 };
  const counter = new MemoryKeyCounter({ clock, ban: () => rules, onBan: (...ban) => bans.push(ban) });
  const decide = async () =>
    (await counter.decide({ keyId: 7, limits: { perMinute: 1, perDay: 10 } })).decision.outcome;
  clock.advance(5_000);
  const outcomes = [await decide(), await decide()];
  clock.advance(1);
  outcomes.push(await decide());
  expect(outcomes).toEqual(["allowed", "limited", "banned"]);
  const bannedAt = clock.steadyNow();
  expect(bans).toEqual([[7, { bannedAt, bannedUntil: bannedAt + 300_000 }]]);
  clock.advance(10);
  await counter.unban(7, 11);
  expect(await counter.quota(7)).toMatchObject({ bannedAt });
  await counter.unban(7, 10);
  expect(await counter.quota(7)).toMatchObject({ bannedAt: -1, minute: { used: 1 } });
  clock.advance(60_000);
  expect(await counter.quota(7)).toMatchObject({ minute: { used: 0 }, day: { used: 1 } });
  clock.advance(86_400_000);
  expect(await counter.quota(7)).toBeUndefined();
  expect(counter.queueLength).toBe(0);
});
