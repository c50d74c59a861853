import { describe, expect, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import { loggableError, parseServers } from "../../src/rate-limit/valkey/connection.ts";
import { parseReplies } from "../../src/rate-limit/valkey/script.ts";
import { STARTS_AT } from "../../trials/simulation/world.ts";
import { key } from "../subjects.ts";
import { FREE, setUp } from "./simulated-servers.ts";

describe("batches", () => {
  test("requests that arrive together form batches, in order, and so do those that arrive meanwhile", async () => {
    const { time, valkey, model, first } = await setUp({ maxBatchSize: 3 });
    valkey.pause();
    const decide = (ids: number[]) => Promise.all(ids.map(async (id) => first.decide(key(id), FREE)));
    const together = decide([0, 1, 2, 3]);
    time.run(0);
    const meanwhile = decide([4, 5]);
    valkey.resume();
    await Promise.all([together, meanwhile]);
    expect(model.batches.map((batch) => batch.map(({ subject }) => subject.id))).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
  });

  test("requests of one key are decided together, and each response has its own count", async () => {
    const { model, first } = await setUp();
    const ids = [1, 2, 1, 1, 2];
    const decisions = await Promise.all(ids.map(async (id) => first.decide(key(id), FREE)));
    expect(decisions.map(({ remaining }) => remaining)).toEqual([59, 59, 58, 57, 58]);
    expect(model.batches.map((batch) => batch.map(({ requests }) => requests.length))).toEqual([[3, 2]]);
  });

  test("the 60th request, those that are limited and those that are banned are told apart", async () => {
    const rules = { strikes: 3, graceMs: 0, lengthMs: 300_000, maxLengthMs: 300_000 };
    const bans: number[] = [];
    const { time, first } = await setUp({ rules, onBan: (keyId) => bans.push(keyId) });
    const decide = (count: number) =>
      Promise.all(Array.from({ length: count }, async () => first.decide(key(1), FREE)));
    const outcomes = (await decide(62)).map(({ outcome }) => outcome);
    expect(outcomes.slice(58)).toEqual(["allowed", "allowed", "limited", "limited"]);
    for (const strikes of [1, 2]) {
      time.run(1);
      const limited = { outcome: "limited", retryAfterSeconds: 60, minute: { strikes } };
      expect(await decide(2)).toMatchObject([limited, limited]);
    }
    time.run(1);
    expect(await decide(2)).toMatchObject([
      { outcome: "banned", retryAfterSeconds: 300 },
      { outcome: "banned" },
    ]);
    expect(bans).toEqual([1]);
  });

  test("X-RateLimit-Reset is on the clock of the server, however wrong Valkey's is", async () => {
    const { time, processes, first } = await setUp();
    const resetAt = Math.ceil((STARTS_AT + 60_000) / 1000);
    expect(await first.decide(key(1), FREE)).toMatchObject({ resetAt });
    expect(await first.quota(key(1))).toMatchObject({ minute: { openedAt: STARTS_AT } });
    for (const process of processes) process.wallStepMs = 3_600_000;
    time.run(1_000);
    expect(await first.decide(key(1), FREE)).toMatchObject({
      resetAt: resetAt + 3_600,
      retryAfterSeconds: 0,
      minute: { resetAt: resetAt + 3_600 },
      day: { resetAt: resetAt + 86_340 + 3_600 },
    });
  });

  test("with 10,000 requests in the queue the next one is rejected, and those before it are decided", async () => {
    const { valkey, states, first } = await setUp();
    valkey.pause();
    const decisions = Array.from({ length: 10_000 }, async (_, id) => first.decide(key(id), FREE));
    expect(first.queueLength).toBe(10_000);
    await expect(first.decide(key(1), FREE)).rejects.toEqual(
      new Unavailable("the queue for Valkey is full (10000 requests)"),
    );
    valkey.resume();
    expect((await Promise.all(decisions)).every(({ outcome }) => outcome === "allowed")).toBe(true);
    expect(states).toEqual([]);
  });
});

describe("a pause", () => {
  test("of 500 ms is waited for, and four servers give exactly the limit", async () => {
    const { time, valkey, states, burst } = await setUp();
    for (const ms of [30, 100, 400, 500]) {
      valkey.pause();
      const allowed = burst(50);
      time.run(ms);
      valkey.resume();
      expect(await allowed).toBe(60);
      time.run(60_000);
    }
    expect(states).toEqual([]);
  });

  test("after one of 500 ms, the requests that waited for another batch wait for 500 ms again", async () => {
    const { time, valkey, states, first } = await setUp();
    valkey.pause();
    const one = first.decide(key(1), FREE);
    time.run(450);
    const other = first.decide(key(2), FREE);
    valkey.resume();
    valkey.pause();
    time.run(450);
    expect(states).toEqual([]);
    valkey.resume();
    expect([await one, await other]).toMatchObject([{ remaining: 59 }, { remaining: 59 }]);
  });

  test("of the own process is none of Valkey", async () => {
    const { time, valkey, states, processes, first } = await setUp();
    valkey.pause();
    const decision = first.decide(key(1), FREE);
    time.run(0);
    for (const process of processes) process.block(10_000);
    time.run(10_000);
    valkey.resume();
    expect(await decision).toMatchObject({ remaining: 59 });
    expect(states).toEqual([]);
  });

  test("an operator's read that fails changes nothing for clients", async () => {
    const { time, valkey, states, first, burst } = await setUp();
    await burst(1);
    valkey.silenceConnections();
    const quota = first.quota(key(1));
    time.run(10_000);
    expect(states).toEqual([]);
    valkey.stop();
    expect(await quota).toMatchObject({ minute: { used: 1 } });
  });
});

test("close while Valkey decides: the reply does not bring the server back", async () => {
  const { time, valkey, states, first, burst } = await setUp({ servers: 1 });
  valkey.pause();
  const waiting = burst(3);
  time.run(0);
  const closed = first.close();
  valkey.resume();
  time.run(0);
  await closed;
  expect(await waiting).toBe(3);
  expect(states).toEqual([]);
  expect(await first.decide(key(1), FREE)).toMatchObject({ outcome: "allowed" });
});

test("a logged error has no password, also if the server that does not know AUTH quotes it", () => {
  const message = "ERR unknown command 'auth', with args beginning with: 'petstore' 's3cret' ";
  const error = loggableError(Object.assign(new Error(message), { command: {} }));
  expect(error.message).toBe("ERR unknown command 'auth'");
  expect(error).not.toHaveProperty("command");
});

test("a reply has the decisions and the quota of each group after those of what was handed over", () => {
  const numbers = Array.from({ length: 25 }, (_, i) => 1_000 + i);
  numbers[15] = 0;
  const decided = (first: number, isNewBan: boolean) => ({
    allowed: first,
    limited: first + 1,
    isNewBan,
    quota: {
      minute: { openedAt: first + 3, used: first + 4, graceBeganAt: -1, strikes: first + 5 },
      day: { openedAt: first + 6, used: first + 7, graceBeganAt: -1, strikes: first + 8 },
      bannedAt: first + 9,
      bannedUntil: first + 10,
      lastBanMs: first + 11,
    },
  });
  const parse = (handOvers: number, groups: number) => parseReplies(numbers.join(","), { handOvers, groups });
  expect(parse(1, 1)).toEqual({ now: 1_000, decided: [decided(1_013, false)] });
  expect(parse(0, 2)).toEqual({ now: 1_000, decided: [decided(1_001, true), decided(1_013, false)] });
  expect(() => parse(1, 2)).toThrow(TypeError);
  expect(() => parseReplies('1,"2"', { handOvers: 0, groups: 0 })).toThrow(TypeError);
  expect(() => parseReplies('"2"', { handOvers: 0, groups: 0 })).toThrow(TypeError);
});

test("the addresses of Valkey have the port 6379 and database 0 unless they say otherwise", () => {
  expect(parseServers(["redis://valkey"])).toEqual({
    addresses: [{ host: "valkey", port: 6_379, db: 0 }],
    isCluster: false,
  });
  expect(parseServers(["redis://:a%20b@[::1]:7000/12", "rediss://ann@valkey/x"], "PEM")).toEqual({
    addresses: [
      { host: "::1", port: 7_000, db: 12, password: "a b" },
      { host: "valkey", port: 6_379, db: 0, username: "ann", tls: { ca: "PEM" } },
    ],
    isCluster: true,
  });
  expect(parseServers(["rediss://valkey"]).addresses[0].tls).toEqual({});
  expect(() => parseServers([])).toThrow("Valkey needs an address");
  for (const url of ["valkey", "http://valkey", "redis://"])
    expect(() => parseServers([url])).toThrow("redis://host:6379");
});
