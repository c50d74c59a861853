import { RedisClient } from "bun";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { inspect } from "node:util";
import type { Decision, Limits } from "../../../src/domain/rate-limit.ts";
import type { RateLimiter } from "../../../src/domain/ports.ts";
import { freePort } from "../../../harness/ports.ts";
import type { Server } from "../../../harness/server.ts";
import { startValkey } from "../../../harness/valkey.ts";
import { key } from "../../subjects.ts";
import { openWithFallback, StateChanges } from "../../rate-limit/open-valkey.ts";

const FREE = { perMinute: 60, perDay: 1_000 };
const ONCE = { perMinute: 1, perDay: 1 };
/** How much later than 25 ms a timer may fire while other tests keep the machine busy. */
const SLACK_MS = 75;

const open: RateLimiter[] = [];
afterEach(async () => {
  for (const rateLimiter of open.splice(0)) await rateLimiter.close();
});

/** With a timeout of 250 ms, which a busy machine keeps; tests of the 25 ms set it themselves. */
async function openWith(
  changes: StateChanges,
  settings: Parameters<typeof openWithFallback>[0],
): Promise<RateLimiter> {
  const rateLimiter = await openWithFallback({
    timeoutMs: 250,
    ...settings,
    onStateChange: changes.onStateChange,
  });
  open.push(rateLimiter);
  return rateLimiter;
}

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const start = performance.now();
  const value = await work();
  return { ms: performance.now() - start, value };
}

/** Sends requests until that many changes were reported: a broken connection shows at the next request. */
async function requestUntil(changes: StateChanges, count: number, rateLimiter: RateLimiter): Promise<void> {
  while (changes.states.length < count) {
    await rateLimiter.decide(key(99), FREE);
    await Bun.sleep(1);
  }
}

describe("one server", () => {
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

  test("frozen: no request waits longer than 25 ms, later ones do not wait; available within a second of its return", async () => {
    const changes = new StateChanges();
    const rateLimiter = await openWith(changes, { url: server.url, prefix: "frozen:", timeoutMs: 25 });
    expect(await rateLimiter.decide(key(1), ONCE)).toMatchObject({ outcome: "allowed" });
    expect(await rateLimiter.decide(key(1), ONCE)).toMatchObject({ outcome: "limited" });
    await rateLimiter.decide(key(2), FREE);

    server.freeze();
    const waits = await Promise.all(
      Array.from({ length: 500 }, (_, i) => timed(async () => rateLimiter.decide(key(i + 100), FREE))),
    );
    expect(Math.max(...waits.map(({ ms }) => ms))).toBeLessThan(25 + SLACK_MS);
    expect(waits.filter(({ value }) => value.outcome === "allowed")).toHaveLength(500);
    expect(changes.states).toEqual(["unavailable"]);

    const immediate = rateLimiter.decide(key(2), FREE);
    expect(immediate).not.toBeInstanceOf(Promise);
    expect(immediate).toMatchObject({ outcome: "allowed", remaining: 59 });
    expect(rateLimiter.decide(key(1), ONCE)).toMatchObject({ outcome: "limited" });

    server.thaw();
    const { ms } = await timed(() => changes.reach(2));
    expect(ms).toBeLessThan(1_000);
    expect(changes.states).toEqual(["unavailable", "available"]);
    expect(await rateLimiter.decide(key(2), FREE)).toMatchObject({ remaining: 58 });
  });

  test("a ban by Valkey holds while it is unavailable, an unban ends it, and Valkey gets the unban later", async () => {
    const changes = new StateChanges();
    const ban = { strikes: 2, graceMs: 0, lengthMs: 60_000, maxLengthMs: 60_000 };
    const rateLimiter = await openWith(changes, { url: server.url, prefix: "banned:", ban });
    while ((await rateLimiter.decide(key(1), ONCE)).outcome !== "banned");

    server.freeze();
    expect(await rateLimiter.decide(key(1), ONCE)).toMatchObject({ outcome: "banned", retryAfter: 60 });
    expect(rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "banned" });
    await rateLimiter.unban(key(1), 0);
    expect(rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed" });
    server.thaw();

    await changes.reach(2);
    expect(await rateLimiter.decide(key(1), ONCE)).toMatchObject({ outcome: "limited" });
  });

  test("usage is that of this process while Valkey is unavailable", async () => {
    const changes = new StateChanges();
    const rateLimiter = await openWith(changes, { url: server.url, prefix: "usage:" });
    server.freeze();
    expect(await rateLimiter.usage(key(1))).toBeUndefined();
    expect(changes.states).toEqual(["unavailable"]);
    rateLimiter.decide(key(1), FREE);
    expect(await rateLimiter.usage(key(1))).toMatchObject({ minute: { used: 1 } });
    server.thaw();
    await changes.reach(2);
  });

  test("close does not wait for a frozen server", async () => {
    const rateLimiter = await openWithFallback({ url: server.url });
    server.freeze();
    const decision = rateLimiter.decide(key(1), FREE);
    const { ms } = await timed(() => rateLimiter.close());
    expect(ms).toBeLessThan(SLACK_MS);
    expect(await decision).toMatchObject({ outcome: "allowed" });
    server.thaw();
  });

  test("a blocked event loop of our own is no timeout of Valkey", async () => {
    const changes = new StateChanges();
    const rateLimiter = await openWith(changes, { url: server.url, prefix: "still:", timeoutMs: 25 });
    const remaining: number[] = [];
    for (let i = 0; i < 5; i++) {
      const decision = rateLimiter.decide(key(1), FREE);
      const end = performance.now() + 100;
      while (performance.now() < end);
      remaining.push((await decision).remaining);
    }
    expect(remaining).toEqual([59, 58, 57, 56, 55]);
    expect(changes.states).toEqual([]);
  });

  /** Each makes the server reject writes, and ends that again. */
  const REJECTIONS: Record<
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

  test.each(Object.entries(REJECTIONS))(
    "%s: the process decides until the server works again",
    async (name, fault) => {
      const changes = new StateChanges();
      const rateLimiter = await openWith(changes, { url: server.url, prefix: `${name}:` });
      await rateLimiter.decide(key(1), FREE);
      await admin.send(fault.begin[0] ?? "", fault.begin.slice(1));
      expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", remaining: 59 });
      expect(rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", remaining: 58 });
      expect(inspect(changes.causes[0])).toMatch(fault.says);

      await admin.send(fault.end[0] ?? "", fault.end.slice(1));
      const { ms } = await timed(() => changes.reach(2));
      expect(ms).toBeLessThan(1_000);
      expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", remaining: 58 });
      expect(changes.states).toEqual(["unavailable", "available"]);
    },
  );

  test("loading its data: the process decides until the server is ready", async () => {
    const changes = new StateChanges();
    const rateLimiter = await openWith(changes, { url: server.url, prefix: "loading:" });
    await admin.send("DEBUG", ["POPULATE", "2000", "filler", "100"]);
    await admin.send("CONFIG", ["SET", "key-load-delay", "250"]);
    await admin.send("CONFIG", ["SET", "loading-process-events-interval-bytes", "1024"]);
    const loaded = admin.send("DEBUG", ["RELOAD"]);
    await requestUntil(changes, 1, rateLimiter);
    expect(rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed" });
    await loaded;
    const { ms } = await timed(() => changes.reach(2));
    expect(ms).toBeLessThan(1_000);
    await admin.send("FLUSHALL", []);
  });

  test("killed and restarted: one change each way, and no request fails", async () => {
    const changes = new StateChanges();
    const rateLimiter = await openWith(changes, { url: server.url, prefix: "killed:" });
    const requests = Array.from({ length: 200 }, async (_, i) => rateLimiter.decide(key(i), FREE));
    await server.kill();
    const decisions: Decision[] = await Promise.all(requests);
    expect(decisions.every(({ outcome }) => outcome === "allowed")).toBe(true);
    await changes.reach(1);
    expect(rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed" });

    await server.restart();
    const { ms } = await timed(() => changes.reach(2));
    expect(ms).toBeLessThan(1_000);
    // The server saves nothing, so its counts are lost.
    expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", remaining: 59 });
    expect(changes.states).toEqual(["unavailable", "available"]);
    admin.close();
    admin = new RedisClient(server.url);
  });
});

test("unavailable at the start: reported once, and the process decides", async () => {
  const changes = new StateChanges();
  const rateLimiter = await openWith(changes, { url: `redis://127.0.0.1:${freePort()}` });
  expect(changes.states).toEqual(["unavailable"]);
  expect(inspect(changes.causes[0])).toContain("ECONNREFUSED");
  const limits: Limits = ONCE;
  expect(rateLimiter.decide(key(1), limits)).toMatchObject({ outcome: "allowed" });
  expect(rateLimiter.decide(key(1), limits)).toMatchObject({ outcome: "limited" });
});

test("a database that the server does not have: reported, and no other database is used", async () => {
  const server = await startValkey({ settings: { databases: "4" } });
  const changes = new StateChanges();
  const rateLimiter = await openWith(changes, { url: `${server.url}/4` });
  expect(changes.states).toEqual(["unavailable"]);
  expect(String(changes.causes[0])).toContain("DB index is out of range");
  expect(rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed" });

  const last = await openWith(changes, { url: `${server.url}/3` });
  await last.decide(key(1), FREE);
  const keys = new RedisClient(`${server.url}/3`);
  expect(await keys.send("DBSIZE", [])).toBe(1);
  keys.close();
  expect(changes.states).toEqual(["unavailable"]);
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
    const changes = new StateChanges();
    const rateLimiter = await openWith(changes, { url: `redis://:s3cret%2F%C3%A5@${host}` });
    expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ remaining: 59 });
    expect(changes.states).toEqual([]);
  });

  test.each([`redis://:s3cret-not@`, `redis://nobody:s3cret-not@`])(
    "is never reported: %s",
    async (address) => {
      const changes = new StateChanges();
      await openWith(changes, { url: address + host });
      expect(changes.states).toEqual(["unavailable"]);
      expect(inspect(changes.causes[0], { depth: 9, showHidden: true })).not.toContain("s3cret");
      expect(String(changes.causes[0])).toContain("WRONGPASS");
    },
  );

  test("that is wrong is reported for a cluster too", async () => {
    const changes = new StateChanges();
    await openWith(changes, { url: [`redis://:s3cret-not@${host}`] });
    expect(changes.states).toEqual(["unavailable"]);
    expect(String(changes.causes[0])).toContain("WRONGPASS");
    expect(inspect(changes.causes[0], { depth: 9, showHidden: true })).not.toContain("s3cret");
  });

  test("is not in the error about an invalid address", async () => {
    for (const address of [
      "redis://:s3cret@",
      "http://:s3cret@localhost",
      ":s3cret",
      "redis://:s3cret@h:x",
    ]) {
      const error = await openWithFallback({ url: address }).catch((thrown: unknown) => inspect(thrown));
      expect(error).toContain("must look like redis://");
      expect(error).not.toContain("s3cret");
    }
  });
});
