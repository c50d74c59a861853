import { describe, expect, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import { key } from "../subjects.ts";
import { FREE, OUTAGE_MS, setUp, TIMEOUT_MS } from "./simulated-servers.ts";

describe("an outage", () => {
  test("begins after 500 ms; from then on PostgreSQL decides, and nobody waits for Valkey", async () => {
    const { time, valkey, states, first, burst } = await setUp();
    valkey.pause();
    const waiting = burst(3);
    time.run(TIMEOUT_MS);
    expect(states).toEqual([]);
    time.run(OUTAGE_MS - TIMEOUT_MS);
    expect(states).toEqual(Array.from({ length: 4 }, () => "unavailable: no response within 500 ms"));
    expect(await waiting).toBe(12);
    expect(await first.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", limit: 60, remaining: 47 });
    valkey.resume();
    time.run(0);
    expect(states.slice(4)).toEqual(Array.from({ length: 4 }, () => "available"));
  });

  test("is not noticed: the servers allow what was left, and nothing more afterwards", async () => {
    const { limiters, first, burst, beginOutage, endOutage } = await setUp();
    expect(await burst(5)).toBe(20);
    // Each server has seen the key lately, the first one 21 requests and the last one 24.
    for (const limiter of limiters) await limiter.decide(key(1), FREE);
    await beginOutage();
    expect(await first.decide(key(1), FREE)).toMatchObject({ remaining: 38 });
    expect(1 + (await burst(50))).toBeWithin(36, 36 + 4);
    expect(await burst(1)).toBe(0);
    await endOutage();
    expect(await burst(50)).toBe(0);
  });

  test("a client that stays with one server gets its whole limit, however often Valkey comes and goes", async () => {
    const { time, first, burst, beginOutage, endOutage } = await setUp();
    const allowed: number[] = [];
    for (let outage = 0; outage < 3; outage++) {
      allowed.push(await burst(10, { on: [first] }));
      await beginOutage();
      allowed.push(await burst(9, { on: [first] }));
      await endOutage();
    }
    expect(allowed).toEqual([10, 9, 10, 9, 10, 9]);
    expect(await burst(50, { on: [first] })).toBe(3);
    time.run(60_000);
    await beginOutage();
    expect(await burst(70, { on: [first] })).toBe(60);
  });

  test("that only one server sees gives at most the limit once more", async () => {
    const { time, valkey, processes, limiters, burst } = await setUp();
    for (const process of processes.slice(0, 1)) valkey.cutOff(process, 30_000);
    const noticed = burst(1, { on: limiters.slice(0, 1), id: 9 });
    time.run(OUTAGE_MS);
    await noticed;
    expect(await burst(100, { on: limiters.slice(0, 1) })).toBe(60);
    const others = burst(100, { on: limiters.slice(1) });
    time.run(0);
    expect(await others).toBe(60);
    time.run(31_000);
    expect(await burst(10)).toBe(0);
  });

  test("Retry-After and X-RateLimit-Reset are true on both sides, also after the machine's clock was set", async () => {
    const { time, processes, first, beginOutage, endOutage, burst } = await setUp();
    expect(await burst(60, { on: [first] })).toBe(60);
    const before = await first.decide(key(1), FREE);
    time.run(20_000);
    await beginOutage();
    const during = await first.decide(key(1), FREE);
    expect(during).toMatchObject({ outcome: "limited", remaining: 0, resetAt: before.resetAt });
    expect(during.retryAfterSeconds).toBeWithin(before.retryAfterSeconds - 21, before.retryAfterSeconds - 19);
    for (const process of processes) process.wallStepMs = 3_600_000;
    time.run(1_000);
    expect(await first.decide(key(1), FREE)).toMatchObject({
      resetAt: before.resetAt + 3_600,
      minute: { limit: 60, remaining: 0, resetAt: before.resetAt + 3_600 },
    });
    await endOutage();
    const after = await first.decide(key(1), FREE);
    time.run(1_000 * after.retryAfterSeconds);
    expect(await first.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", remaining: 59 });
  });

  test("while PostgreSQL is unavailable too, requests are rejected with 503", async () => {
    const { database, first, burst, beginOutage, endOutage } = await setUp();
    await beginOutage();
    database.isDown = true;
    await expect(Promise.resolve(first.decide(key(1), FREE))).rejects.toBeInstanceOf(Unavailable);
    await endOutage();
    expect(await burst(20)).toBe(60);
  });
});

describe("after an outage", () => {
  test("what a server knows comes before its next decision about the key, once", async () => {
    const { model, first, beginOutage, endOutage } = await setUp({ servers: 1 });
    await beginOutage();
    for (let id = 1; id <= 200; id++) await first.decide(key(id), FREE);
    await endOutage();
    expect(model.handOvers).toHaveLength(0);
    expect(await first.decide(key(150), FREE)).toMatchObject({ remaining: 58 });
    expect(await first.decide(key(150), FREE)).toMatchObject({ remaining: 57 });
    expect(model.handOvers.map(({ subject }) => subject.id)).toEqual([150]);
  });

  test("in a cluster, a batch is about one key, and many are on their way", async () => {
    const cluster = { isCluster: true, maxBatchSize: 64, maxConcurrentBatches: 1_024 };
    const { model, first, beginOutage, endOutage } = await setUp({ servers: 1, ...cluster });
    await beginOutage();
    for (let id = 1; id <= 200; id++) await first.decide(key(id), FREE);
    await endOutage();
    model.keys = 0;
    const decisions = Array.from({ length: 200 }, async (_, i) => first.decide(key(i + 1), FREE));
    expect((await Promise.all(decisions)).every(({ remaining }) => remaining === 58)).toBe(true);
    expect(model).toMatchObject({ keys: 1, handOvers: { length: 200 } });
  });

  test("a reply that is lost counts twice rather than not at all", async () => {
    const { time, valkey, model, burst } = await setUp({ servers: 1 });
    valkey.pause();
    const waiting = burst(1);
    time.run(0);
    valkey.silenceConnections();
    valkey.resume();
    time.run(OUTAGE_MS + 250);
    expect(await waiting).toBe(1);
    expect(model.quotaOf(1).minute.used).toBe(1);
    expect(await burst(1)).toBe(1);
    expect(model.quotaOf(1).minute.used).toBe(2);
  });

  test.each([500, 100])("a reply that takes 30 s makes no window longer (%i ms)", async (timeoutMs) => {
    const { time, valkey, processes, burst, endOutage } = await setUp({ servers: 1, timeoutMs });
    const limits = { perMinute: 5, perDay: 1_000 };
    valkey.pause();
    const waiting = burst(5, { limits });
    time.run(OUTAGE_MS);
    expect(await waiting).toBe(5);
    for (const process of processes) valkey.cutOff(process, 30_000);
    await endOutage();
    time.run(55_000);
    expect(await burst(1, { limits })).toBe(0);
    time.run(5_000);
    expect(await burst(5, { limits })).toBe(5);
  });

  test("a Valkey that lost its data learns what was known", async () => {
    const { time, valkey, model, states, burst } = await setUp({ servers: 1 });
    time.run(1_000);
    await burst(20);
    valkey.stop();
    model.flush();
    expect(await burst(10)).toBe(10);
    time.run(10_000);
    valkey.isDown = false;
    time.run(250);
    // Each cause is reported once, however often it occurs.
    expect(states).toEqual([
      "unavailable: the connection was closed",
      "unavailable: the connection is closed",
      "available",
    ]);
    expect(await burst(50)).toBe(30);
    expect(model.quotaOf(1).minute.used).toBe(60);
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

  test("stay in an outage, new ones are made, and they stay after it; each is reported once", async () => {
    const bans: number[] = [];
    const { time, first, beginOutage, endOutage } = await setUp({
      rules,
      onBan: (id) => bans.push(id),
      servers: 1,
    });
    const getBanned = async (id: number) => {
      while ((await first.decide(key(id), ONE)).outcome !== "banned") time.run(1);
    };
    await getBanned(3);
    await beginOutage();
    expect(await first.decide(key(3), ONE)).toMatchObject({ outcome: "banned" });
    await getBanned(4);
    await endOutage();
    for (const id of [3, 4]) expect(await first.decide(key(id), ONE)).toMatchObject({ outcome: "banned" });
    expect(bans).toEqual([3, 4]);
    time.run(300_000);
    for (const id of [3, 4]) expect(await first.decide(key(id), ONE)).toMatchObject({ outcome: "allowed" });
  });

  test("an unban of an outage ends a ban from before it on both sides, and none that began after it", async () => {
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
    expect(await one?.decide(key(3), ONE)).toMatchObject({ outcome: "banned" });
    for (const id of [3, 4]) await one?.unban(key(id), 0);
    expect(await one?.decide(key(3), ONE)).toMatchObject({ outcome: "limited" });
    time.run(5_000);
    await getBanned(4);
    time.run(15_000);
    expect(model.quotaOf(3).bannedUntil).toBe(-1);
    expect(model.quotaOf(4).bannedUntil).toBeGreaterThan(0);
  });

  test("an unban while Valkey counts ends the ban in PostgreSQL, too", async () => {
    const { time, first, beginOutage, endOutage } = await setUp({ rules, servers: 1 });
    await beginOutage();
    while ((await first.decide(key(3), ONE)).outcome !== "banned") time.run(1);
    await endOutage();
    expect(await first.decide(key(3), ONE)).toMatchObject({ outcome: "banned" });
    await first.unban(key(3), 0);
    await beginOutage();
    expect(await first.decide(key(3), ONE)).toMatchObject({ outcome: "limited" });
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
    time.run(250);
    expect(model.quotaOf(3)).toMatchObject({ bannedAt: -1, bannedUntil: -1, lastBanMs: 0 });
    expect(await first.decide(key(3), ONE)).toMatchObject({ outcome: "limited" });
  });

  test("2,000 unbans of an outage all arrive", async () => {
    const { model, first, beginOutage, endOutage } = await setUp({ servers: 1 });
    await beginOutage();
    for (let id = 1; id <= 2_000; id++) await first.unban(key(id), 0);
    await endOutage();
    const unbanned = model.handOvers.filter(({ unbannedAt }) => unbannedAt !== -1);
    expect(new Set(unbanned.map(({ subject }) => subject.id)).size).toBe(2_000);
  });
});
