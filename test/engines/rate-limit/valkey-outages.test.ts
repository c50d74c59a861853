import { afterAll, afterEach, describe, expect, jest, test } from "bun:test";
import * as fc from "fast-check";
import { DEFAULT_BAN } from "../../../src/domain/ban-rules.ts";
import type { RateLimiter } from "../../../src/domain/ports/rate-limiter.ts";
import { MemoryKeyCounter } from "../../../src/rate-limit/memory/memory-key-counter.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { FREE } from "../../conformance/rate-limiter-fixture.ts";
import { advance, settle, useFakeTimers } from "../../fake-timers.ts";
import { openWithFallback, openWithoutFallback, StateChanges } from "../../rate-limit/open-valkey.ts";
import { key } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";

const SERVERS = 4;

const server = await startValkey();
afterAll(() => server.stop());

const open: RateLimiter[] = [];
afterEach(async () => {
  server.thaw();
  for (const rateLimiter of open.splice(0)) await rateLimiter.close();
});

/** So many decisions of each rate limiter. */
const decisionsOf = (limiters: readonly RateLimiter[], count: number, id: number, limits = FREE) =>
  limiters.flatMap((limiter) =>
    Array.from({ length: count }, () => async () => limiter.decide(key(id), limits)),
  );

async function countAllowed(decisions: readonly (() => Promise<{ outcome: string }>)[]): Promise<number> {
  const decided = await Promise.all(decisions.map((decide) => decide()));
  return decided.filter(({ outcome }) => outcome === "allowed").length;
}

test("pauses of 30 to 400 ms during bursts over four servers: each key gets exactly 60 of 60", async () => {
  const settings = { url: server.url, prefix: "pauses:" };
  for (let i = 0; i < SERVERS; i++) open.push(await openWithoutFallback(settings));
  const pauses = fc.sample(fc.integer({ min: 30, max: 400 }), { numRuns: 20, seed: 1 });
  for (const [id, ms] of pauses.entries()) {
    const decisions = decisionsOf(open, 30, id);
    const first = countAllowed(decisions.slice(0, 50));
    server.freeze();
    const second = countAllowed(decisions.slice(50));
    await Bun.sleep(ms);
    server.thaw();
    expect((await first) + (await second)).toBe(60);
  }
}, 60_000);

/** Timers and clocks are those of the test, so only a frozen server is too slow. */
describe("four servers and an outage", () => {
  useFakeTimers();

  async function setUp(prefix: string) {
    const clock = new TestClock();
    const changes = new StateChanges();
    const settings = {
      url: server.url,
      prefix,
      ban: () => DEFAULT_BAN,
      clock,
      testClock: clock,
      backgroundTimeoutMs: 1_000_000_000,
      // A counter in place of PostgreSQL, whose time the test cannot stop.
      counter: new MemoryKeyCounter({ clock, ban: () => DEFAULT_BAN }),
      onStateChange: changes.onStateChange,
    };
    const limiters: RateLimiter[] = [];
    for (let i = 0; i < SERVERS; i++) limiters.push(await openWithFallback(settings));
    open.push(...limiters);
    const burst = (count: number, limits = FREE, id = 1) =>
      countAllowed(decisionsOf(limiters, count, id, limits));
    const beginOutage = async () => {
      server.freeze();
      const noticed = burst(1, FREE, 999);
      for (let tick = 0; tick < 11; tick++) await advance(50);
      expect(await noticed).toBe(SERVERS);
      expect(changes.states).toEqual(Array.from({ length: SERVERS }, () => "unavailable"));
    };
    const endOutage = async () => {
      server.thaw();
      for (; changes.states.length < 2 * SERVERS; await settle()) jest.advanceTimersByTime(1);
      // Each server decides after its report.
      await burst(1, FREE, 998);
    };
    return { clock, limiters, burst, beginOutage, endOutage };
  }

  test("in the middle of a window: a Pro key gets its limit, and one request more for each server at most", async () => {
    const PRO = { perMinute: 300, perDay: 10_000 };
    const { burst, beginOutage, endOutage, limiters } = await setUp("middle:");
    const before = await burst(24, PRO);
    // So each server has seen the key lately.
    for (const limiter of limiters) await limiter.decide(key(1), PRO);
    await beginOutage();
    const during = await burst(300, PRO);
    await endOutage();
    const after = await burst(300, PRO);
    expect(before + SERVERS).toBe(100);
    expect(100 + during + after).toBeWithin(300, 300 + SERVERS + 1);
  });

  test("an unban of the outage reaches Valkey, and every server", async () => {
    const { clock, beginOutage, endOutage, limiters } = await setUp("bans:");
    const ONE = { perMinute: 1, perDay: 100 };
    const [one, other] = limiters;
    for (let i = 0; i < 12; i++, clock.advance(1_001)) await one?.decide(key(1), ONE);
    expect(await other?.decide(key(1), ONE)).toMatchObject({ outcome: "banned" });
    await beginOutage();
    // Servers learn of an unban from the database.
    for (const limiter of limiters) await limiter.unban(key(1), 0);
    await endOutage();
    expect(await other?.decide(key(1), ONE)).toMatchObject({ outcome: "limited" });
  });
});
