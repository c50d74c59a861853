import { describe, expect, test } from "bun:test";
import { DEFAULT_BAN } from "../../src/domain/rate-limit.ts";
import { createMemoryRateLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { address, key } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";
import { MapUsageStore } from "./map-usage-store.ts";

const FREE = { perMinute: 60, perDay: 1_000 };
const ONCE = { perMinute: 1, perDay: 1 };
const NEVER_MS = 3_600_000;

function setUp() {
  const clock = new TestClock();
  const usageStore = new MapUsageStore();
  const open = () => createMemoryRateLimiter({ clock, ban: DEFAULT_BAN, usageStore, flushEveryMs: NEVER_MS });
  const rateLimiter = open();
  const decide = (id: number, limits = FREE) => rateLimiter.decide(key(id), limits);
  const earnBan = (id: number) => {
    for (let i = 0; i < 2; i++) decide(id, ONCE);
    clock.advance(1_001);
    for (let i = 0; i < 10; i++) decide(id, ONCE);
  };
  return { clock, usageStore, open, rateLimiter, decide, earnBan };
}

for (const byMs of [86_400_000, -86_400_000, 1_000_000_000_000]) {
  describe(`the machine's clock set by ${byMs} ms`, () => {
    test("bans and strikes keep their length", () => {
      const { clock, decide, earnBan, rateLimiter } = setUp();
      earnBan(1);
      for (let i = 0; i < 2; i++) decide(2, ONCE);
      clock.advance(1_001);
      for (let i = 0; i < 9; i++) decide(2, ONCE);
      clock.step(byMs);
      expect(decide(1, ONCE)).toMatchObject({ outcome: "banned", retryAfter: 299 });
      expect(rateLimiter.usage(key(2))?.day.strikes).toBe(9);
      expect(decide(2, ONCE)).toMatchObject({ outcome: "banned", retryAfter: 300 });
      clock.advance(298_999);
      expect(decide(1, FREE)).toMatchObject({ outcome: "allowed" });
    });

    test("usage and the store show the new time; a restart gives no quota twice", async () => {
      const { clock, usageStore, open, rateLimiter, decide, earnBan } = setUp();
      earnBan(1);
      for (let i = 0; i < 60; i++) decide(2);
      rateLimiter.decide(address("192.0.2.1"), ONCE);
      clock.step(byMs);
      decide(3);
      expect(rateLimiter.usage(key(1))).toMatchObject({ bannedAt: clock.now() });
      await rateLimiter.close();
      expect(usageStore.find(key(1))).toMatchObject({ bannedUntil: clock.now() + 300_000 });
      expect(usageStore.find(key(2))?.minute.openedAt).toBe(clock.now());

      const restarted = open();
      expect(restarted.decide(key(1), FREE)).toMatchObject({ outcome: "banned", retryAfter: 300 });
      expect(restarted.decide(key(2), FREE)).toMatchObject({ outcome: "limited", retryAfter: 60 });
      expect(restarted.decide(address("192.0.2.1"), ONCE)).toMatchObject({ outcome: "limited" });
      await restarted.close();
    });
  });
}
