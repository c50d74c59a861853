import { afterEach, describe, expect, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import { type BanRules, DEFAULT_BAN, type Limits, type OnBan } from "../../src/domain/rate-limit.ts";
import { createMemoryRateLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { SharedRateLimiter } from "../../src/rate-limit/valkey/shared-rate-limiter.ts";
import { settle } from "../fake-timers.ts";
import { key } from "../subjects.ts";
import { ModelValkey } from "./model-valkey.ts";
import { VirtualTime } from "./virtual-time.ts";

const FREE: Limits = { perMinute: 60, perDay: 1_000 };
const NO_BANS: BanRules = { ...DEFAULT_BAN, strikes: 1_000 };
const TIMEOUT_MS = 500;
/** The timeout, and a tick of the timer. */
const OUTAGE_MS = 550;

interface Settings {
  readonly servers?: number;
  readonly rules?: BanRules;
  readonly maxBatchSize?: number;
  readonly maxConcurrentBatches?: number;
  readonly onBan?: OnBan;
}

const opened: SharedRateLimiter[] = [];
afterEach(async () => {
  for (const limiter of opened.splice(0)) await limiter.close();
});

/** Several servers on a model of Valkey, whose clock is hours behind theirs. */
async function setUp(settings: Settings = {}) {
  const { servers = 4, rules = DEFAULT_BAN, maxBatchSize = 32, maxConcurrentBatches = 1, onBan } = settings;
  const time = new VirtualTime();
  const valkey = new ModelValkey(() => time.time - 10_000_000, rules);
  const states: string[] = [];
  const limiters = Array.from({ length: servers }, () => {
    const limiter = new SharedRateLimiter(
      {
        clock: time,
        scheduler: time,
        ban: rules,
        local: createMemoryRateLimiter({ clock: time, ban: rules, scheduler: time }),
        timeoutMs: TIMEOUT_MS,
        register: { count: servers, beat: async () => {}, leave: async () => {} },
        onBan,
        onStateChange: (state, cause) =>
          states.push(cause instanceof Error ? `${state}: ${cause.message}` : state),
      },
      { open: valkey.open, maxBatchSize, maxConcurrentBatches },
    );
    opened.push(limiter);
    return limiter;
  });
  for (const limiter of limiters) await limiter.start();
  const [first] = limiters;
  if (first === undefined) throw new Error("no server");

  /** How many requests are allowed, if each of the servers gets so many at once. */
  const burst = async (count: number, { limits = FREE, on = limiters, id = 1 } = {}) => {
    const decisions = on.flatMap((limiter) =>
      Array.from({ length: count }, async () => limiter.decide(key(id), limits)),
    );
    return (await Promise.all(decisions)).filter(({ outcome }) => outcome === "allowed").length;
  };
  /** Every server sees that nothing is left. */
  const exhaust = async () => {
    expect(await burst(20)).toBe(60);
    expect(await burst(1)).toBe(0);
  };
  /** Every server notices. */
  const beginOutage = async () => {
    valkey.pause();
    const noticed = burst(1, { id: 999 });
    await time.advance(OUTAGE_MS);
    await noticed;
  };
  const endOutage = async () => {
    valkey.resume();
    await time.advance(0);
  };
  return { time, valkey, states, limiters, first, burst, exhaust, beginOutage, endOutage };
}

describe("batches", () => {
  test("a single request is sent at once; those that arrive meanwhile form the next batches, in order", async () => {
    const { valkey, first } = await setUp({ maxBatchSize: 3 });
    valkey.pause();
    const decisions = Promise.all([0, 1, 2, 3, 4, 5].map(async (id) => first.decide(key(id), FREE)));
    valkey.resume();
    await decisions;
    expect(valkey.batches.map((batch) => batch.map(({ subject }) => subject.id))).toEqual([
      [0],
      [1, 2, 3],
      [4, 5],
    ]);
  });

  test("with 10,000 requests in the queue the next one is rejected, and those before it are decided", async () => {
    const { valkey, first, states } = await setUp();
    valkey.pause();
    const decisions = Array.from({ length: 10_001 }, async (_, id) => first.decide(key(id), FREE));
    await expect(first.decide(key(1), FREE)).rejects.toEqual(
      new Unavailable("the queue for Valkey is full (10000 requests)"),
    );
    expect(first.queueLength).toBe(10_000);
    valkey.resume();
    expect((await Promise.all(decisions)).every(({ outcome }) => outcome === "allowed")).toBe(true);
    expect(states).toEqual([]);
  });
});

describe("a pause", () => {
  test("of 500 ms is waited for, and four servers give exactly the limit", async () => {
    const { time, valkey, burst, states } = await setUp();
    for (const ms of [30, 100, 400, 500]) {
      valkey.pause();
      const allowed = burst(50);
      await time.advance(ms);
      valkey.resume();
      expect(await allowed).toBe(60);
      await time.advance(60_000);
    }
    expect(states).toEqual([]);
  });

  test("after one of 500 ms, the requests that waited for another batch wait for 500 ms again", async () => {
    const { time, valkey, first, states } = await setUp();
    valkey.pause();
    const one = first.decide(key(1), FREE);
    await time.advance(450);
    const other = first.decide(key(2), FREE);
    valkey.resume();
    valkey.pause();
    await time.advance(450);
    expect(states).toEqual([]);
    valkey.resume();
    expect([await one, await other]).toMatchObject([{ remaining: 59 }, { remaining: 59 }]);
  });

  test("of the own process is none of Valkey", async () => {
    const { time, valkey, first, states } = await setUp();
    valkey.pause();
    const decision = first.decide(key(1), FREE);
    await settle();
    time.time += 10_000;
    await time.advance(0);
    valkey.resume();
    expect(await decision).toMatchObject({ remaining: 59 });
    expect(states).toEqual([]);
  });

  test("an operator's read that fails changes nothing for clients", async () => {
    const { time, valkey, first, burst, states } = await setUp();
    await burst(1);
    valkey.loseConnections();
    const usage = first.usage(key(1));
    await time.advance(10_000);
    expect(states).toEqual([]);
    valkey.kill();
    expect(await usage).toMatchObject({ minute: { used: 1 } });
  });
});

describe("an outage", () => {
  test("begins after 500 ms; from then on nobody waits", async () => {
    const { time, valkey, first, burst, states } = await setUp();
    valkey.pause();
    const waiting = burst(3);
    await time.advance(TIMEOUT_MS);
    expect(states).toEqual([]);
    await time.advance(OUTAGE_MS - TIMEOUT_MS);
    expect(states).toEqual(Array.from({ length: 4 }, () => "unavailable: no reply within 500 ms"));
    expect(await waiting).toBe(12);
    expect(first.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", limit: 60, remaining: 11 });
    valkey.resume();
    await time.advance(0);
    expect(states.slice(4)).toEqual(Array.from({ length: 4 }, () => "available"));
  });

  test("each server gives its share of what was left, and no more is left afterwards", async () => {
    const { burst, beginOutage, endOutage, first, limiters } = await setUp();
    expect(await burst(5)).toBe(20);
    // Each server has seen the key, the last one all 20 requests.
    for (const limiter of limiters) await limiter.decide(key(1), FREE);
    await beginOutage();
    expect(await burst(1)).toBe(4);
    expect(first.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", limit: 60, remaining: 8 });
    const during = 5 + (await burst(50));
    expect(during).toBeWithin(36, 36 + 4);
    await endOutage();
    expect(await burst(50)).toBe(0);
  });

  test("a key that no server has seen gets its limit, and one more for each server at most", async () => {
    const { burst, beginOutage, endOutage } = await setUp({ servers: 7 });
    await beginOutage();
    const given = await burst(50, { id: 7 });
    expect(given).toBeWithin(60, 60 + 7);
    await endOutage();
    expect(await burst(50, { id: 7 })).toBe(0);
  });

  test("with more servers than requests, each server gives one", async () => {
    const { burst, beginOutage } = await setUp({ servers: 6 });
    await beginOutage();
    expect(await burst(10, { limits: { perMinute: 2, perDay: 100 } })).toBe(6);
  });

  test("across the end of a window: the next one has the limit, and one more for each server at most", async () => {
    const { time, burst, exhaust, beginOutage, endOutage } = await setUp({ rules: NO_BANS });
    await exhaust();
    await beginOutage();
    expect(await burst(20)).toBe(0);
    await time.advance(60_000 - OUTAGE_MS);
    expect(await burst(20)).toBe(60);
    await time.advance(30_000);
    await endOutage();
    expect(await burst(20)).toBe(0);
    await time.advance(30_000);
    expect(await burst(20)).toBe(60);
  });

  test("however a client spreads its requests, no minute has more than the limit and one for each server", async () => {
    const { time, limiters, beginOutage } = await setUp();
    await beginOutage();
    const given: number[] = [];
    const send = async (count: number) => {
      for (const limiter of limiters.slice(1)) {
        for (let i = 0; i < count; i++) {
          if ((await limiter.decide(key(5), FREE)).outcome === "allowed") given.push(time.time);
        }
      }
    };
    // Windows that open with one request, and are used up just before they would close and just after it.
    for (let round = 0; round < 5; round++) {
      await send(1);
      await time.advance(58_000);
      await send(14);
      await time.advance(2_000);
      await send(15);
      await time.advance(20_000);
    }
    const most = Math.max(
      ...given.map((from) => given.filter((at) => at >= from && at < from + 60_000).length),
    );
    expect(most).toBeWithin(45, 46);
  });

  test("a client on one server of four gets a quarter of its limit in each minute", async () => {
    const { time, first, beginOutage } = await setUp({ rules: NO_BANS });
    await beginOutage();
    let allowed = 0;
    for (let second = 0; second < 300; second++) {
      if ((await first.decide(key(5), { perMinute: 60, perDay: 100_000 })).outcome === "allowed") allowed++;
      await time.advance(1_000);
    }
    // A request counts for up to a second longer than a minute.
    expect(allowed).toBeWithin(72, 76);
  });

  test("Retry-After and Remaining are true", async () => {
    const { time, first, beginOutage } = await setUp();
    await beginOutage();
    for (let left = 14; left >= 0; left--) {
      expect(first.decide(key(5), FREE)).toMatchObject({ limit: 60, remaining: left });
      await time.advance(100);
    }
    const rejected = await first.decide(key(5), FREE);
    expect(rejected).toMatchObject({ outcome: "limited", limit: 60, remaining: 0 });
    await time.advance(1000 * rejected.retryAfter - 1_001);
    expect(first.decide(key(5), FREE)).toMatchObject({ outcome: "limited" });
    await time.advance(1_001);
    expect(first.decide(key(5), FREE)).toMatchObject({ outcome: "allowed" });
  });

  test("the day is shared like the minute", async () => {
    const limits = { perMinute: 1_000, perDay: 40 };
    const { time, burst, beginOutage, endOutage } = await setUp();
    expect(await burst(5, { limits })).toBe(20);
    await burst(1, { limits });
    await beginOutage();
    expect(await burst(50, { limits })).toBeWithin(16, 16 + 4);
    await time.advance(61_000);
    expect(await burst(50, { limits })).toBe(0);
    await endOutage();
    expect(await burst(50, { limits })).toBe(0);
  });

  test("a key that was limited stays so until its window ends, and a banned key until its ban ends", async () => {
    const rules = { strikes: 2, graceMs: 0, lengthMs: 300_000, maxLengthMs: 300_000 };
    const { time, first, burst, exhaust, beginOutage } = await setUp({ rules });
    await exhaust();
    const limits = { perMinute: 1, perDay: 100 };
    while ((await first.decide(key(2), limits)).outcome !== "banned") await time.advance(1);
    await beginOutage();
    expect(await burst(20)).toBe(0);
    expect(first.decide(key(2), limits)).toMatchObject({ outcome: "banned", retryAfter: 300 });
    await time.advance(60_000);
    expect(await burst(1)).toBe(4);
    expect(first.decide(key(2), limits)).toMatchObject({ outcome: "banned" });
    await time.advance(240_000);
    expect(first.decide(key(2), limits)).toMatchObject({ outcome: "allowed" });
  });

  test("new limits apply to what is left", async () => {
    const { burst, exhaust, beginOutage, first } = await setUp();
    await exhaust();
    await beginOutage();
    expect(await burst(1)).toBe(0);
    expect(first.decide(key(1), { perMinute: 300, perDay: 10_000 })).toMatchObject({
      outcome: "allowed",
      limit: 300,
      remaining: 59,
    });
  });

  test("a step of the machine's clock moves X-RateLimit-Reset and no window", async () => {
    const { time, first, beginOutage } = await setUp();
    await beginOutage();
    const { resetAt } = await first.decide(key(5), FREE);
    time.stepMs = 3_600_000;
    expect(first.decide(key(5), FREE)).toMatchObject({ remaining: 13, resetAt: resetAt + 3_600 });
  });
});

describe("after an outage", () => {
  test("what Valkey counted late is not reported a second time", async () => {
    const { time, valkey, burst } = await setUp({ servers: 1 });
    valkey.pause();
    const waiting = burst(10);
    await time.advance(OUTAGE_MS);
    expect(await waiting).toBe(10);
    expect(await burst(5)).toBe(5);
    valkey.resume();
    await time.advance(0);
    // One request was sent, the others waited for the next batch.
    expect(valkey.batches).toHaveLength(1);
    expect(valkey.reports).toMatchObject([{ minute: { used: 14 }, day: { used: 14 } }]);
    expect(valkey.usageOf(1)).toMatchObject({ minute: { used: 15 }, day: { used: 15 } });
  });

  test("the report comes before the next decision about the key", async () => {
    const { valkey, first, beginOutage, burst } = await setUp({ servers: 1 });
    await beginOutage();
    for (let id = 1; id <= 200; id++) await first.decide(key(id), FREE);
    await burst(10, { id: 150 });
    valkey.resume();
    valkey.pause();
    await settle();
    // The first report is on its way, without this key.
    const decision = first.decide(key(150), FREE);
    valkey.resume();
    expect(await decision).toMatchObject({ remaining: 48 });
    for (let turn = 0; turn < 10; turn++) await settle();
    expect(valkey.reports).toHaveLength(200);
    expect(valkey.reports.findIndex(({ subject }) => subject.id === 150)).toBe(32);
  });

  test("a server that Valkey replies to late: what it may give meanwhile is not given by the others", async () => {
    const { time, valkey, limiters, burst, beginOutage } = await setUp();
    expect(await burst(5)).toBe(20);
    for (const limiter of limiters) await limiter.decide(key(1), FREE);
    await beginOutage();
    // The last server needs another connection.
    valkey.loseConnections(1);
    valkey.resume();
    await time.advance(0);
    const others = await burst(50, { on: limiters.slice(0, 3) });
    expect(others).toBe(3 * 10);
    expect(await burst(50, { on: limiters.slice(3) })).toBe(9);
    await time.advance(2_500);
    expect(await burst(50)).toBe(0);
  });

  test("after two seconds every server gives what is left in Valkey", async () => {
    const { time, first, burst, beginOutage, endOutage } = await setUp();
    await beginOutage();
    await endOutage();
    expect(await burst(60, { on: [first] })).toBe(15);
    await time.advance(2_000);
    expect(await burst(60, { on: [first] })).toBe(45);
  });

  test("a window that has closed is not reported", async () => {
    const { time, valkey, beginOutage, endOutage, burst } = await setUp({ servers: 1 });
    await beginOutage();
    await burst(10);
    await time.advance(60_000);
    await endOutage();
    const report = valkey.reports.find(({ subject }) => subject.id === 1);
    expect(report).toMatchObject({ minute: { used: 0 }, day: { used: 10 } });
  });

  test("a dead connection: another one is used, and what may have been counted is counted again", async () => {
    const { time, valkey, burst, states } = await setUp({ servers: 1 });
    valkey.loseConnections();
    const waiting = burst(10);
    await time.advance(OUTAGE_MS);
    expect(await waiting).toBe(10);
    await time.advance(250 + TIMEOUT_MS);
    expect(states).toEqual(["unavailable: no reply within 500 ms", "available"]);
    expect(await burst(1)).toBe(1);
    expect(valkey.usageOf(1).minute.used).toBe(11);
  });

  test("a reply that is lost counts twice rather than not at all", async () => {
    const { time, valkey, burst } = await setUp({ servers: 1 });
    valkey.pause();
    const waiting = burst(1);
    valkey.loseConnections();
    valkey.resume();
    await time.advance(OUTAGE_MS + 250 + TIMEOUT_MS);
    expect(await waiting).toBe(1);
    expect(valkey.usageOf(1).minute.used).toBe(2);
  });

  test("a Valkey that lost its data learns what was given in the outage", async () => {
    const { time, valkey, burst, states } = await setUp({ servers: 1 });
    await time.advance(1_000);
    await burst(20);
    valkey.kill();
    expect(await burst(10)).toBe(10);
    await time.advance(10_000);
    valkey.restart();
    await time.advance(250);
    expect(states).toEqual(["unavailable: the connection was closed", "available"]);
    expect(valkey.usageOf(1).minute.used).toBe(10);
    await time.advance(50_000);
    expect(valkey.usageOf(1).minute.used).toBe(0);
  });

  test("a connection that lasted a second is replaced at once, another one after 250 ms", async () => {
    const { time, valkey } = await setUp({ servers: 1 });
    await time.advance(1_000);
    valkey.kill();
    valkey.restart();
    await time.advance(0);
    expect(valkey.opened).toBe(2);
    await time.advance(999);
    valkey.kill();
    await time.advance(249);
    expect(valkey.opened).toBe(2);
    await time.advance(1);
    expect(valkey.opened).toBe(3);
    await time.advance(500);
    expect(valkey.opened).toBe(5);
  });

  test("close: nothing is tried any more, and requests that wait are decided", async () => {
    const { time, valkey, first, burst } = await setUp({ servers: 1 });
    valkey.pause();
    const waiting = burst(3);
    await first.close();
    expect(await waiting).toBe(3);
    valkey.kill();
    await time.advance(10_000);
    expect(valkey.opened).toBe(1);
  });
});

describe("bans", () => {
  const rules = { strikes: 2, graceMs: 0, lengthMs: 300_000, maxLengthMs: 1_200_000 };
  const ONE = { perMinute: 1, perDay: 100 };

  test("a ban of an outage is carried over, and doubles the one after it", async () => {
    const bans: number[] = [];
    const onBan: OnBan = (keyId, { bannedAt, bannedUntil }) => bans.push(keyId, bannedUntil - bannedAt);
    const { time, first, beginOutage, endOutage } = await setUp({ rules, onBan, servers: 1 });
    await beginOutage();
    while ((await first.decide(key(3), ONE)).outcome !== "banned") await time.advance(1);
    expect(bans).toEqual([3, 300_000]);
    await time.advance(100_000);
    await endOutage();
    expect(await first.decide(key(3), ONE)).toMatchObject({ outcome: "banned", retryAfter: 200 });
    await time.advance(200_000);
    while ((await first.decide(key(3), ONE)).outcome !== "banned") await time.advance(1);
    expect(bans).toEqual([3, 300_000, 3, 600_000]);
  });

  test("an unban in an outage ends the ban here at once, and in Valkey when it is back", async () => {
    const { time, first, limiters, beginOutage, endOutage, valkey } = await setUp({ rules });
    while ((await first.decide(key(3), ONE)).outcome !== "banned") await time.advance(1);
    await beginOutage();
    expect(first.decide(key(3), ONE)).toMatchObject({ outcome: "banned" });
    await first.unban(key(3), 0);
    expect(first.decide(key(3), ONE)).toMatchObject({ outcome: "limited" });
    await endOutage();
    expect(valkey.usageOf(3).bannedUntil).toBe(-1);
    for (const limiter of limiters) {
      expect((await limiter.decide(key(3), ONE)).outcome).not.toBe("allowed");
    }
  });

  test("2,000 unbans of an outage all arrive", async () => {
    const { first, beginOutage, endOutage, valkey } = await setUp({ servers: 1 });
    await beginOutage();
    for (let id = 1; id <= 2_000; id++) await first.unban(key(id), 0);
    await endOutage();
    for (let turn = 0; turn < 100; turn++) await settle();
    const unbanned = valkey.reports.filter(({ unbannedAgoMs }) => unbannedAgoMs !== undefined);
    expect(unbanned).toHaveLength(2_000);
  });
});
