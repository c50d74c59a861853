import { describe, expect, test } from "bun:test";
import { key } from "../subjects.ts";
import { FREE, OUTAGE_MS, RETURN_MS, setUp, TIMEOUT_MS } from "./simulated-servers.ts";

describe("an outage", () => {
  test("begins after 500 ms; from then on nobody waits", async () => {
    const { time, valkey, states, first, burst } = await setUp();
    valkey.pause();
    const waiting = burst(3);
    time.run(TIMEOUT_MS);
    expect(states).toEqual([]);
    time.run(OUTAGE_MS - TIMEOUT_MS);
    expect(states).toEqual(Array.from({ length: 4 }, () => "unavailable: no response within 500 ms"));
    expect(await waiting).toBe(12);
    expect(first.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", limit: 60, remaining: 11 });
    valkey.resume();
    time.run(RETURN_MS - 1);
    expect(states).toHaveLength(4);
    time.run(1);
    expect(states.slice(4)).toEqual(Array.from({ length: 4 }, () => "available"));
  });

  test("each server gives its share of what was left, and no more is left afterwards", async () => {
    const { limiters, first, burst, beginOutage, endOutage } = await setUp();
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

  test("a server gives its share of a window once, however often Valkey comes and goes", async () => {
    const { time, first, burst, beginOutage, endOutage } = await setUp();
    const given: number[] = [];
    for (let outage = 0; outage < 3; outage++) {
      await beginOutage();
      given.push(await burst(50, { on: [first] }));
      await endOutage();
    }
    expect(given).toEqual([15, 0, 0]);
    expect(await burst(50, { on: [first] })).toBe(45);
    time.run(60_000);
    await beginOutage();
    expect(await burst(50, { on: [first] })).toBe(15);
  });

  test("a share that was not used up shrinks with what is left", async () => {
    const { first, burst, beginOutage, endOutage } = await setUp();
    await beginOutage();
    expect(await burst(5, { on: [first] })).toBe(5);
    await endOutage();
    expect(await burst(35, { on: [first] })).toBe(35);
    await beginOutage();
    // Without its own five requests it would have 25 left, a quarter of which is 7.
    expect(await burst(50, { on: [first] })).toBe(2);
  });

  test("with more servers than requests, each server gives one", async () => {
    const { burst, beginOutage } = await setUp({ servers: 6 });
    await beginOutage();
    expect(await burst(10, { limits: { perMinute: 2, perDay: 100 } })).toBe(6);
  });

  test("Retry-After and Remaining are true", async () => {
    const { time, first, beginOutage } = await setUp();
    await beginOutage();
    for (let left = 14; left >= 0; left--) {
      expect(first.decide(key(5), FREE)).toMatchObject({ limit: 60, remaining: left });
      time.run(100);
    }
    const rejected = await first.decide(key(5), FREE);
    expect(rejected).toMatchObject({ outcome: "limited", limit: 60, remaining: 0 });
    time.run(1000 * rejected.retryAfter - 1_001);
    expect(first.decide(key(5), FREE)).toMatchObject({ outcome: "limited" });
    time.run(1_001);
    expect(first.decide(key(5), FREE)).toMatchObject({ outcome: "allowed" });
  });

  test("new limits apply to what is left", async () => {
    const { first, burst, exhaust, beginOutage } = await setUp();
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
    const { time, processes, first, beginOutage } = await setUp();
    await beginOutage();
    const { resetAt } = await first.decide(key(5), FREE);
    for (const process of processes) process.wallStepMs = 3_600_000;
    time.run(1_000);
    expect(first.decide(key(5), FREE)).toMatchObject({
      remaining: 13,
      resetAt: resetAt + 3_600,
      minute: { limit: 60, remaining: 13, resetAt: resetAt + 3_600 },
      day: { limit: 1_000 },
    });
  });
});

describe("after an outage", () => {
  test("the report comes before the next decision about the key", async () => {
    const { time, valkey, model, first, burst, beginOutage } = await setUp({ servers: 1 });
    await beginOutage();
    valkey.resume();
    time.run(RETURN_MS - 1);
    expect(model.reports).toHaveLength(0);
    for (let id = 1; id <= 200; id++) await first.decide(key(id), FREE);
    await burst(10, { id: 150 });
    valkey.pause();
    time.run(1);
    // The first report is on its way, without this key.
    const decision = first.decide(key(150), FREE);
    valkey.resume();
    expect(await decision).toMatchObject({ remaining: 48 });
    time.run(0);
    expect(model.reports).toHaveLength(200);
    expect(model.reports.findIndex(({ subject }) => subject.id === 150)).toBe(32);
  });

  test("in a cluster, a batch is about one key, and many are on their way", async () => {
    const cluster = { isCluster: true, maxBatchSize: 64, maxConcurrentBatches: 1_024 };
    const { time, valkey, model, first, beginOutage } = await setUp({ servers: 1, ...cluster });
    await beginOutage();
    for (let id = 1; id <= 200; id++) await first.decide(key(id), FREE);
    model.keys = 0;
    valkey.resume();
    time.run(RETURN_MS);
    expect(await first.decide(key(150), FREE)).toMatchObject({ remaining: 58 });
    time.run(0);
    expect(model).toMatchObject({ keys: 1, reports: { length: 200 } });
  });

  test("a server that Valkey replies to late: what it may give meanwhile is not given by the others", async () => {
    const { time, valkey, limiters, burst, beginOutage } = await setUp();
    expect(await burst(5)).toBe(20);
    for (const limiter of limiters) await limiter.decide(key(1), FREE);
    await beginOutage();
    // The last server needs another connection.
    valkey.breakLinks(({ name }) => name === "3");
    valkey.resume();
    time.run(0);
    const others = await burst(50, { on: limiters.slice(0, 3) });
    expect(others).toBe(3 * 10);
    expect(await burst(50, { on: limiters.slice(3) })).toBe(9);
    time.run(250 + RETURN_MS);
    expect(await burst(50)).toBe(0);
  });

  test("after half a second every server gives what is left in Valkey", async () => {
    const { time, valkey, first, burst, beginOutage } = await setUp();
    await beginOutage();
    valkey.resume();
    time.run(RETURN_MS - 1);
    expect(await burst(60, { on: [first] })).toBe(15);
    time.run(1);
    expect(await burst(60, { on: [first] })).toBe(45);
  });

  test("an outage that goes on after a moment is one outage, and the report that was lost is sent again", async () => {
    const { time, valkey, model, states, burst, beginOutage } = await setUp({ servers: 1 });
    await beginOutage();
    expect(await burst(5)).toBe(5);
    valkey.resume();
    valkey.pause();
    time.run(10);
    valkey.stop();
    time.run(5_000);
    expect(model.quotaOf(1).minute.used).toBe(0);
    valkey.isDown = false;
    valkey.resume();
    time.run(250);
    expect(model.quotaOf(1).minute.used).toBe(5);
    time.run(RETURN_MS);
    expect(states).toEqual(["unavailable: no response within 500 ms", "available"]);
  });

  test("a reply that is lost counts twice rather than not at all", async () => {
    const { time, valkey, model, burst } = await setUp({ servers: 1 });
    valkey.pause();
    const waiting = burst(1);
    time.run(0);
    valkey.silenceLinks();
    valkey.resume();
    time.run(OUTAGE_MS + 250 + TIMEOUT_MS);
    expect(await waiting).toBe(1);
    expect(model.quotaOf(1).minute.used).toBe(2);
  });

  test.each([
    { sent: "requests", timeoutMs: 500 },
    { sent: "a report", timeoutMs: 500 },
    { sent: "a report", timeoutMs: 100 },
  ])(
    "a reply to $sent that takes 30 s makes no window longer ($timeoutMs ms)",
    async ({ sent, timeoutMs }) => {
      const { time, valkey, processes, burst, beginOutage } = await setUp({ servers: 1, timeoutMs });
      const limits = { perMinute: 5, perDay: 1_000 };
      if (sent === "a report") {
        await beginOutage();
        expect(await burst(5, { limits })).toBe(5);
        valkey.resume();
      }
      valkey.pause();
      const waiting = burst(5, { limits });
      time.run(OUTAGE_MS);
      expect(await waiting).toBe(sent === "requests" ? 5 : 0);
      for (const process of processes) valkey.cutOff(process, 30_000);
      valkey.resume();
      time.run(30_000);
      await beginOutage();
      time.run(25_000);
      expect(await burst(1, { limits })).toBe(0);
      time.run(5_000);
      expect(await burst(5, { limits })).toBe(5);
    },
  );

  test("a report counts in the window in which the requests were given", async () => {
    const { time, valkey, model, burst, beginOutage } = await setUp({ servers: 1 });
    await beginOutage();
    const givenAt = model.now();
    expect(await burst(5)).toBe(5);
    time.run(30_000);
    valkey.resume();
    time.run(0);
    expect(model.quotaOf(1).minute).toMatchObject({ openedAt: givenAt, used: 5 });
  });

  test("a Valkey that lost its data learns what was given in the outage", async () => {
    const { time, valkey, model, states, burst } = await setUp({ servers: 1 });
    time.run(1_000);
    await burst(20);
    valkey.stop();
    model.flush();
    expect(await burst(10)).toBe(10);
    time.run(10_000);
    valkey.isDown = false;
    time.run(250 + RETURN_MS);
    expect(states).toEqual(["unavailable: the connection was closed", "available"]);
    expect(model.quotaOf(1).minute.used).toBe(10);
    time.run(50_000);
    expect(model.quotaOf(1).minute.used).toBe(0);
  });

  test("a connection that lasted a second is replaced at once, another one after 250 ms", async () => {
    const { time, valkey, opens } = await setUp({ servers: 1 });
    time.run(1_000);
    valkey.stop();
    valkey.isDown = false;
    time.run(0);
    expect(opens).toHaveLength(2);
    time.run(999);
    valkey.stop();
    time.run(249);
    expect(opens).toHaveLength(2);
    time.run(1);
    expect(opens).toHaveLength(3);
    time.run(500);
    expect(opens).toHaveLength(5);
  });

  test("close: nothing is tried any more, and requests that wait are decided", async () => {
    const { time, valkey, opens, first, burst } = await setUp({ servers: 1 });
    valkey.pause();
    const waiting = burst(3);
    await first.close();
    expect(await waiting).toBe(3);
    valkey.stop();
    time.run(10_000);
    expect(opens).toHaveLength(1);
  });
});

describe("bans", () => {
  const rules = { strikes: 2, graceMs: 0, lengthMs: 300_000, maxLengthMs: 1_200_000 };
  const ONE = { perMinute: 1, perDay: 100 };

  test("a key that is banned stays so in an outage, and no other is banned", async () => {
    const bans: number[] = [];
    const { time, first, beginOutage } = await setUp({ rules, onBan: (id) => bans.push(id), servers: 1 });
    while ((await first.decide(key(3), ONE)).outcome !== "banned") time.run(1);
    await beginOutage();
    for (let i = 0; i < 20; i++, time.run(1_001)) {
      expect(first.decide(key(3), ONE)).toMatchObject({ outcome: "banned" });
      expect(first.decide(key(4), ONE)).toMatchObject({ outcome: i === 0 ? "allowed" : "limited" });
    }
    expect(bans).toEqual([3]);
  });

  test("an unban of an outage ends a ban from before it, and none that began after it", async () => {
    const { time, valkey, model, processes, limiters } = await setUp({ rules, servers: 2 });
    const [one, other] = limiters;
    const getBanned = async (id: number) => {
      while ((await other?.decide(key(id), ONE))?.outcome !== "banned") time.run(1);
    };
    await getBanned(3);
    expect(await one?.decide(key(3), ONE)).toMatchObject({ outcome: "banned" });
    for (const process of processes.slice(0, 1)) valkey.cutOff(process, 10_000);
    void one?.decide(key(9), ONE);
    time.run(OUTAGE_MS);
    for (const id of [3, 4]) await one?.unban(key(id), 0);
    expect(one?.decide(key(3), ONE)).toMatchObject({ outcome: "limited" });
    time.run(5_000);
    await getBanned(4);
    time.run(15_000);
    expect(model.quotaOf(3).bannedUntil).toBe(-1);
    expect(model.quotaOf(4).bannedUntil).toBeGreaterThan(0);
  });

  test("an unban that is lost with its connection is sent again", async () => {
    const { time, valkey, model, first } = await setUp({ rules, servers: 1 });
    while ((await first.decide(key(3), ONE)).outcome !== "banned") time.run(1);
    valkey.pause();
    const unbanned = first.unban(key(3), 0);
    time.run(10);
    valkey.stop();
    await unbanned;
    valkey.isDown = false;
    valkey.resume();
    expect(model.quotaOf(3).bannedAt).toBeGreaterThan(0);
    time.run(250 + RETURN_MS);
    expect(model.quotaOf(3)).toMatchObject({ bannedAt: -1, bannedUntil: -1, lastBanMs: 0 });
    expect(await first.decide(key(3), ONE)).toMatchObject({ outcome: "limited" });
  });

  test("2,000 unbans of an outage all arrive", async () => {
    const { time, model, first, beginOutage, endOutage } = await setUp({ servers: 1 });
    await beginOutage();
    for (let id = 1; id <= 2_000; id++) await first.unban(key(id), 0);
    await endOutage();
    time.run(0);
    const unbanned = model.reports.filter(({ unbannedAgoMs }) => unbannedAgoMs !== undefined);
    expect(unbanned).toHaveLength(2_000);
  });
});
