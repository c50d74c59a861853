import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from "bun:test";
import * as fc from "fast-check";
import { DEFAULT_BAN } from "../../../src/domain/rate-limit.ts";
import type { RateLimiter } from "../../../src/domain/ports.ts";
import { parseServers, ValkeyConnection } from "../../../src/rate-limit/valkey/connection.ts";
import type { Server } from "../../../trials/harness/server.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { ValkeyModel } from "../../../trials/simulation/valkey.ts";
import { advance, settle, useFakeTimers } from "../../fake-timers.ts";
import { openWithFallback, openWithoutFallback, StateChanges } from "../../rate-limit/open-valkey.ts";
import { key } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";

const FREE = { perMinute: 60, perDay: 1_000 };
const SERVERS = 4;

let server: Server;
beforeAll(async () => void (server = await startValkey()));
afterAll(() => server.stop());

const open: RateLimiter[] = [];
afterEach(async () => {
  server.thaw();
  for (const rateLimiter of open.splice(0)) await rateLimiter.close();
});

async function countAllowed(decisions: readonly (() => Promise<{ outcome: string }>)[]): Promise<number> {
  const decided = await Promise.all(decisions.map((decide) => decide()));
  return decided.filter(({ outcome }) => outcome === "allowed").length;
}

test("pauses of 30 to 400 ms during bursts over four servers: each key gets exactly 60 of 60", async () => {
  const settings = { url: server.url, prefix: "pauses:" };
  for (let i = 0; i < SERVERS; i++) open.push(await openWithoutFallback(settings));
  const pauses = fc.sample(fc.integer({ min: 30, max: 400 }), { numRuns: 20, seed: 1 });
  for (const [id, ms] of pauses.entries()) {
    const decisions = open.flatMap((limiter) =>
      Array.from({ length: 30 }, () => async () => limiter.decide(key(id), FREE)),
    );
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

  async function setUp(prefix: string, ban = DEFAULT_BAN) {
    const clock = new TestClock();
    const changes = new StateChanges();
    const limiters: RateLimiter[] = [];
    for (let i = 0; i < SERVERS; i++) {
      limiters.push(
        await openWithFallback({
          url: server.url,
          prefix,
          ban,
          clock,
          testClock: clock,
          backgroundTimeoutMs: 1_000_000_000,
          register: { count: SERVERS, beat: async () => true, leave: async () => {} },
          onStateChange: changes.onStateChange,
        }),
      );
    }
    open.push(...limiters);
    const burst = (count: number, limits = FREE, id = 1) =>
      countAllowed(
        limiters.flatMap((limiter) =>
          Array.from({ length: count }, () => async () => limiter.decide(key(id), limits)),
        ),
      );
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

  test("an unban and a ban of the outage reach Valkey, and every server", async () => {
    const { clock, beginOutage, endOutage, limiters } = await setUp("bans:");
    const ONE = { perMinute: 1, perDay: 100 };
    const [one, other] = limiters;
    const getBanned = async (id: number) => {
      for (let i = 0; i < 12; i++, clock.advance(1_001)) await one?.decide(key(id), ONE);
    };
    await getBanned(1);
    expect(await other?.decide(key(1), ONE)).toMatchObject({ outcome: "banned" });
    await beginOutage();
    // Servers learn of an unban from the database.
    for (const limiter of limiters) await limiter.unban(key(1), 0);
    await getBanned(2);
    await endOutage();
    await advance(2_000);
    expect(await other?.decide(key(1), ONE)).toMatchObject({ outcome: "limited" });
    expect(await other?.decide(key(2), ONE)).toMatchObject({ outcome: "banned" });
  });
});

test("the register has the servers of the last 15 seconds by Valkey's clock, and no more", async () => {
  const clock = new TestClock();
  const settings = {
    servers: parseServers(server.url),
    prefix: "register:",
    ban: DEFAULT_BAN,
    testClock: clock,
  };
  const link = await ValkeyConnection.open(settings, key(1));
  expect(await link.servers()).toEqual([]);
  expect(await link.servers({ id: "one", text: "1: first" })).toEqual(["1: first"]);
  clock.advance(15_000);
  expect((await link.servers({ id: "two", text: "2" })).toSorted()).toEqual(["1: first", "2"]);
  clock.advance(1);
  expect(await link.servers({ id: "two", text: "2 again" })).toEqual(["2 again"]);
  await link.servers({ id: "three", text: "3" });
  await link.removeServer("three");
  expect(await link.servers()).toEqual(["2 again"]);
  clock.advance(-3_600_000);
  expect(await link.servers()).toEqual([]);
  link.close();
});

test("the scripts decide and report as the rules of the domain do, in random histories", async () => {
  const subject = fc.constantFrom(1, 2).map((id) => ({ kind: "key" as const, id }));
  const ago = fc.oneof(fc.nat(200), fc.nat(90_000), fc.constantFrom(59_999, 60_000, 86_399_999, 86_400_000));
  const counted = fc.record({ openedAgoMs: ago, used: fc.nat(3) });
  const limits = fc.constantFrom({ perMinute: 2, perDay: 5 }, { perMinute: 5, perDay: 3 });
  const step = fc.oneof(
    fc.record({ requests: fc.array(fc.record({ subject, limits }), { minLength: 1, maxLength: 5 }) }),
    fc.record({ advanceMs: fc.oneof(fc.nat(2_000), fc.nat(70_000), fc.constantFrom(-5_000, 86_400_000)) }),
    fc.record({
      report: fc.record({
        subject,
        minute: counted,
        day: counted,
        ban: fc.option(fc.record({ agoMs: ago, lengthMs: fc.integer({ min: 1, max: 300_000 }) }), {
          nil: undefined,
        }),
        unbannedAgoMs: fc.option(ago, { nil: undefined }),
      }),
      lateMs: fc.option(fc.oneof(ago, fc.constant(-5)), { nil: undefined }),
    }),
  );
  const rules = { ...DEFAULT_BAN, strikes: 2, graceMs: 100 };
  const servers = parseServers(server.url);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30, size: "max" }), async (steps) => {
      const clock = new TestClock();
      const settings = { servers, prefix: `alike:${run++}:`, ban: rules, testClock: clock };
      const link = await ValkeyConnection.open(settings, key(1));
      const model = new ValkeyModel(() => clock.now(), rules);
      try {
        for (const next of steps) {
          if ("advanceMs" in next) clock.advance(next.advanceMs);
          const [one, other] = await Promise.all(
            [link, model].map(async (each) => {
              if ("requests" in next) return each.decide(next.requests);
              if (!("report" in next)) return undefined;
              const { report, lateMs } = next;
              return each.report([{ ...report, sentAt: lateMs && clock.now() - lateMs }]);
            }),
          );
          expect(one).toEqual(other);
        }
      } finally {
        link.close();
      }
    }),
    { numRuns: 100 },
  );
}, 60_000);
