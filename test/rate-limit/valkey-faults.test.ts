import { RedisClient } from "bun";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { inspect } from "node:util";
import type { Limits, Decision } from "../../src/domain/rate-limit.ts";
import type { RateLimiter } from "../../src/domain/ports.ts";
import { freePort } from "../../harness/ports.ts";
import type { Server } from "../../harness/server.ts";
import { startValkey } from "../../harness/valkey.ts";
import { openFallible, Turns } from "./valkey-opening.ts";

const FREE = { perMinute: 60, perDay: 1_000 };
const ONCE = { perMinute: 1, perDay: 1 };
/** What the machine's scheduler may add to a wait of 25 ms while other tests keep it busy. */
const SLACK_MS = 75;
const BACK_WITHIN_MS = 1_000;

const open: RateLimiter[] = [];
afterEach(async () => {
  for (const rateLimiter of open.splice(0)) await rateLimiter.close();
});

/** As patient as can be told from dead, so that a busy machine decides nothing; where 25 ms matter they are given. */
async function openWith(turns: Turns, settings: Parameters<typeof openFallible>[0]): Promise<RateLimiter> {
  const rateLimiter = await openFallible({ commandTimeoutMs: 250, ...settings, onTurn: turns.onTurn });
  open.push(rateLimiter);
  return rateLimiter;
}

/** Lasts as long as Valkey keeps it waiting. */
async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const start = performance.now();
  const value = await work();
  return { ms: performance.now() - start, value };
}

/** Keeps asking, as traffic does: a server that is only cut off is noticed by the next request. */
async function askUntil(turns: Turns, count: number, rateLimiter: RateLimiter): Promise<void> {
  while (turns.told.length < count) {
    await rateLimiter.decide("key:99", FREE);
    await Bun.sleep(1);
  }
}

describe("a server of one's own", () => {
  let server: Server;
  let admin: RedisClient;
  beforeAll(async () => {
    server = await startValkey({ settings: { "enable-debug-command": "yes" } });
    admin = new RedisClient(server.url);
  });
  afterAll(async () => {
    admin.close();
    await server.stop();
  });

  test("frozen: nobody waits longer than 25 ms, then nobody waits at all; thawed, it is back in a second", async () => {
    const turns = new Turns();
    const rateLimiter = await openWith(turns, { url: server.url, prefix: "frozen:", commandTimeoutMs: 25 });
    expect(await rateLimiter.decide("key:1", ONCE)).toMatchObject({ outcome: "allowed" });
    expect(await rateLimiter.decide("key:1", ONCE)).toMatchObject({ outcome: "limited" });
    await rateLimiter.decide("key:2", FREE);

    server.freeze();
    const waits = await Promise.all(
      Array.from({ length: 500 }, (_, i) => timed(async () => rateLimiter.decide(`key:${i + 100}`, FREE))),
    );
    expect(Math.max(...waits.map(({ ms }) => ms))).toBeLessThan(25 + SLACK_MS);
    expect(waits.filter(({ value }) => value.outcome === "allowed")).toHaveLength(500);
    expect(turns.told).toEqual(["lost"]);

    const atOnce = rateLimiter.decide("key:2", FREE);
    expect(atOnce).not.toBeInstanceOf(Promise);
    expect(atOnce).toMatchObject({ outcome: "allowed", remaining: 59 });
    expect(rateLimiter.decide("key:1", ONCE)).toMatchObject({ outcome: "limited" });

    server.thaw();
    const { ms } = await timed(() => turns.reach(2));
    expect(ms).toBeLessThan(BACK_WITHIN_MS);
    expect(turns.told).toEqual(["lost", "back"]);
    expect(await rateLimiter.decide("key:2", FREE)).toMatchObject({ remaining: 58 });
  });

  test("a ban that is known stands while Valkey is away, a unban lifts it, and Valkey learns of it", async () => {
    const turns = new Turns();
    const ban = { strikes: 2, graceMs: 0, lengthMs: 60_000 };
    const rateLimiter = await openWith(turns, { url: server.url, prefix: "banned:", ban });
    while ((await rateLimiter.decide("key:1", ONCE)).outcome !== "banned");

    server.freeze();
    expect(await rateLimiter.decide("key:1", ONCE)).toMatchObject({ outcome: "banned", retryAfter: 60 });
    expect(rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "banned" });
    await rateLimiter.unban("key:1", Date.now() + 1_000);
    expect(rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "allowed" });
    server.thaw();

    await turns.reach(2);
    expect(await rateLimiter.decide("key:1", ONCE)).toMatchObject({ outcome: "limited" });
  });

  test("a usage of this process is told while Valkey does not answer", async () => {
    const turns = new Turns();
    const rateLimiter = await openWith(turns, { url: server.url, prefix: "told:" });
    server.freeze();
    expect(await rateLimiter.usage("key:1")).toBeUndefined();
    expect(turns.told).toEqual(["lost"]);
    rateLimiter.decide("key:1", FREE);
    expect(await rateLimiter.usage("key:1")).toMatchObject({ minute: { used: 1 } });
    server.thaw();
    await turns.reach(2);
  });

  test("closing does not wait for a frozen server", async () => {
    const rateLimiter = await openFallible({ url: server.url });
    server.freeze();
    const asked = rateLimiter.decide("key:1", FREE);
    const { ms } = await timed(() => rateLimiter.close());
    expect(ms).toBeLessThan(SLACK_MS);
    expect(await asked).toMatchObject({ outcome: "allowed" });
    server.thaw();
  });

  test("usage still ourselves is not taken for Valkey's silence", async () => {
    const turns = new Turns();
    const rateLimiter = await openWith(turns, { url: server.url, prefix: "still:", commandTimeoutMs: 25 });
    const left: number[] = [];
    for (let i = 0; i < 5; i++) {
      const asked = rateLimiter.decide("key:1", FREE);
      const end = performance.now() + 100;
      while (performance.now() < end);
      left.push((await asked).remaining);
    }
    expect(left).toEqual([59, 58, 57, 56, 55]);
    expect(turns.told).toEqual([]);
  });

  /** Each makes the server refuse to count, and lets it count again. */
  const REFUSALS: Record<
    string,
    { readonly begin: string[]; readonly end: string[]; readonly says: RegExp }
  > = {
    "out of memory": {
      begin: ["CONFIG", "SET", "maxmemory", "1"],
      end: ["CONFIG", "SET", "maxmemory", "0"],
      says: /OOM/,
    },
    "a read-only replica": {
      begin: ["REPLICAOF", "127.0.0.1", "1"],
      end: ["REPLICAOF", "NO", "ONE"],
      says: /READONLY/,
    },
  };

  test.each(Object.entries(REFUSALS))(
    "%s: requests go on here until it counts again",
    async (name, fault) => {
      const turns = new Turns();
      const rateLimiter = await openWith(turns, { url: server.url, prefix: `${name}:` });
      await rateLimiter.decide("key:1", FREE);
      await admin.send(fault.begin[0] ?? "", fault.begin.slice(1));
      expect(await rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "allowed", remaining: 59 });
      expect(rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "allowed", remaining: 58 });
      expect(inspect(turns.causes[0])).toMatch(fault.says);

      await admin.send(fault.end[0] ?? "", fault.end.slice(1));
      const { ms } = await timed(() => turns.reach(2));
      expect(ms).toBeLessThan(BACK_WITHIN_MS);
      expect(await rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "allowed", remaining: 58 });
      expect(turns.told).toEqual(["lost", "back"]);
    },
  );

  test("loading its data: requests go on here until it has", async () => {
    const turns = new Turns();
    const rateLimiter = await openWith(turns, { url: server.url, prefix: "loading:" });
    await admin.send("DEBUG", ["POPULATE", "2000", "filler", "100"]);
    await admin.send("CONFIG", ["SET", "key-load-delay", "250"]);
    await admin.send("CONFIG", ["SET", "loading-process-events-interval-bytes", "1024"]);
    const loaded = admin.send("DEBUG", ["RELOAD"]);
    await askUntil(turns, 1, rateLimiter);
    expect(rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "allowed" });
    await loaded;
    const { ms } = await timed(() => turns.reach(2));
    expect(ms).toBeLessThan(BACK_WITHIN_MS);
    await admin.send("FLUSHALL", []);
  });

  test("killed and started again at the same address: lost and back once each, nothing thrown", async () => {
    const turns = new Turns();
    const rateLimiter = await openWith(turns, { url: server.url, prefix: "killed:" });
    const asked = Array.from({ length: 200 }, async (_, i) => rateLimiter.decide(`key:${i}`, FREE));
    await server.kill();
    const decisions: Decision[] = await Promise.all(asked);
    expect(decisions.every(({ outcome }) => outcome === "allowed")).toBe(true);
    await turns.reach(1);
    expect(rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "allowed" });

    await server.restart();
    const { ms } = await timed(() => turns.reach(2));
    expect(ms).toBeLessThan(BACK_WITHIN_MS);
    // Memory alone: what it had counted is gone with it.
    expect(await rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "allowed", remaining: 59 });
    expect(turns.told).toEqual(["lost", "back"]);
    admin.close();
    admin = new RedisClient(server.url);
  });
});

test("not there at the start: told once, counted here meanwhile", async () => {
  const turns = new Turns();
  const rateLimiter = await openWith(turns, { url: `redis://127.0.0.1:${freePort()}` });
  expect(turns.told).toEqual(["lost"]);
  expect(inspect(turns.causes[0])).toContain("ECONNREFUSED");
  const limits: Limits = ONCE;
  expect(rateLimiter.decide("key:1", limits)).toMatchObject({ outcome: "allowed" });
  expect(rateLimiter.decide("key:1", limits)).toMatchObject({ outcome: "limited" });
});

test("a database that the server does not have: told, and counted here instead of in another", async () => {
  const server = await startValkey({ settings: { databases: "4" } });
  const turns = new Turns();
  const rateLimiter = await openWith(turns, { url: `${server.url}/4` });
  expect(turns.told).toEqual(["lost"]);
  expect(String(turns.causes[0])).toContain("DB index is out of range");
  expect(rateLimiter.decide("key:1", FREE)).toMatchObject({ outcome: "allowed" });

  const last = await openWith(turns, { url: `${server.url}/3` });
  await last.decide("key:1", FREE);
  const keys = new RedisClient(`${server.url}/3`);
  expect(await keys.send("DBSIZE", [])).toBe(1);
  keys.close();
  expect(turns.told).toEqual(["lost"]);
  await server.stop();
});

describe("a password", () => {
  let server: Server;
  let host: string;
  beforeAll(async () => {
    server = await startValkey({ settings: { requirepass: "s3cret/å" } });
    host = new URL(server.url).host;
  });
  afterAll(() => server.stop());

  test("is taken from the address", async () => {
    const turns = new Turns();
    const rateLimiter = await openWith(turns, { url: `redis://:s3cret%2F%C3%A5@${host}` });
    expect(await rateLimiter.decide("key:1", FREE)).toMatchObject({ remaining: 59 });
    expect(turns.told).toEqual([]);
  });

  test.each([`redis://:s3cret-not@`, `redis://nobody:s3cret-not@`])(
    "is never told on: %s",
    async (address) => {
      const turns = new Turns();
      await openWith(turns, { url: address + host });
      expect(turns.told).toEqual(["lost"]);
      expect(inspect(turns.causes[0], { depth: 9, showHidden: true })).not.toContain("s3cret");
      expect(String(turns.causes[0])).toContain("WRONGPASS");
    },
  );

  test("that is wrong is told as such of a cluster, too", async () => {
    const turns = new Turns();
    await openWith(turns, { url: [`redis://:s3cret-not@${host}`] });
    expect(turns.told).toEqual(["lost"]);
    expect(String(turns.causes[0])).toContain("WRONGPASS");
    expect(inspect(turns.causes[0], { depth: 9, showHidden: true })).not.toContain("s3cret");
  });

  test("is not repeated by the complaint about an address that cannot be one", async () => {
    for (const address of [
      "redis://:s3cret@",
      "http://:s3cret@localhost",
      ":s3cret",
      "redis://:s3cret@h:x",
    ]) {
      const complaint = await openFallible({ url: address }).catch((error: unknown) => inspect(error));
      expect(complaint).toContain("must look like redis://");
      expect(complaint).not.toContain("s3cret");
    }
  });
});
