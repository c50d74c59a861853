import { describe, expect, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import { DEFAULT_PLANS } from "../../src/domain/plans.ts";
import { generateSecret } from "../../src/domain/secrets.ts";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import { MemoryRateLimiter } from "../../src/rate-limit/memory-rate-limiter.ts";
import { advance, finish, settle, useFakeTimers } from "../fake-timers.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { address } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";
import { MapKeyStore } from "./map-key-store.ts";
import { CLIENT, openAuthenticator } from "./open-authenticator.ts";

useFakeTimers();

const OTHER_CLIENT = { clientAddress: "192.0.2.2" };
const newSecret = () => generateSecret("production");

async function setUp() {
  const keys = new MapKeyStore();
  const clock = new TestClock();
  const rateLimiter = new MemoryRateLimiter({ clock, ban: () => DEFAULT_BAN });
  const { authenticator, reader } = await openAuthenticator({ keys, clock, rateLimiter });
  const authenticate = (secret: string, client = CLIENT) =>
    authenticator.authenticate(`Bearer ${secret}`, client);
  /** Counts a request of the client without a valid key, as the service does after each. */
  const count = (client = CLIENT) =>
    rateLimiter.decide(address(client.clientAddress), DEFAULT_PLANS.anonymous);
  const exhaust = () => {
    while (count().outcome === "allowed");
  };
  /** How many of the unknown secrets are looked up. */
  const lookupsOf = (secrets: readonly string[]) => {
    const before = keys.lookups;
    for (const secret of secrets) authenticate(secret);
    return keys.lookups - before;
  };
  return { keys, clock, authenticator, reader, authenticate, count, exhaust, lookupsOf };
}

const secrets = (length: number) => Array.from({ length }, newSecret);

describe("lookups of unknown keys", () => {
  test("16 run at a time and 1,000 wait; the next key is not looked up", async () => {
    const { keys, authenticate } = await setUp();
    const delayed = keys.delay();
    const { id, secret } = keys.create();
    const waiting = secrets(1_015).map((secret) => authenticate(secret));
    const last = authenticate(secret);
    expect(keys.lookups).toBe(16);
    expect(authenticate(newSecret())).toEqual(new Unavailable("too many keys are being looked up"));
    delayed.end();
    expect(new Set(await finish(Promise.all(waiting)))).toEqual(new Set(["invalid_api_key"]));
    expect(await last).toMatchObject({ keyId: id });
    expect(keys.lookups).toBe(1_016);
  });

  test("one that fails makes room for the next", async () => {
    const { keys, authenticate } = await setUp();
    keys.respond = () => {
      throw new TypeError("a mistake");
    };
    for (const secret of secrets(16)) expect(() => authenticate(secret)).toThrow("a mistake");
    const { promise, reject } = Promise.withResolvers<never>();
    keys.respond = () => promise;
    const failing = secrets(16).map((secret) => authenticate(secret));
    expect(keys.lookups).toBe(32);
    const { id, secret } = keys.create();
    const next = authenticate(secret);
    keys.respond = (found) => Promise.resolve(found);
    reject(new Unavailable("the store is unavailable"));
    for (const result of failing) expect(await result).toBeInstanceOf(Unavailable);
    expect(await next).toMatchObject({ keyId: id });
  });

  test("of unknown keys, 16 are looked up in 10 ms; keys that exist make room at once", async () => {
    const { keys, authenticate } = await setUp();
    keys.respond = (found) => Promise.resolve(found);
    const existing = Array.from({ length: 200 }, () => keys.create());
    await Promise.all(existing.map(({ secret }) => authenticate(secret)));
    for (const secret of secrets(50)) authenticate(secret);
    await settle();
    for (const lookups of [216, 232, 248]) {
      expect(keys.lookups).toBe(lookups);
      await advance(9);
      expect(keys.lookups).toBe(lookups);
      await advance(1);
    }
    expect(keys.lookups).toBe(250);
  });

  test("on SQLite every key is looked up within its request: none waits, and none is turned away", async () => {
    const directory = disposableDirectory();
    const { keys, close } = openSqlite(directory.path("store.db"));
    const { authenticator } = await openAuthenticator({ keys, clock: new TestClock() });
    for (const secret of secrets(5_000))
      expect(authenticator.authenticate(`Bearer ${secret}`, CLIENT)).toBe("invalid_api_key");
    expect([authenticator.cacheStatistics.misses, authenticator.lookupQueueLength]).toEqual([5_000, 0]);
    await close();
    directory.remove();
  });

  test("a key that found too many waiting comes first when it is sent again", async () => {
    const { keys, authenticate } = await setUp();
    const delayed = keys.delay();
    const { id, secret } = keys.create();
    const waiting = secrets(1_016).map((unknown) => authenticate(unknown));
    expect(authenticate(secret)).toBeInstanceOf(Unavailable);
    const again = authenticate(secret);
    expect(again).toBeInstanceOf(Promise);
    expect(authenticate(newSecret())).toBeInstanceOf(Unavailable);
    delayed.end();
    expect(await finish(Promise.resolve(again))).toMatchObject({ keyId: id });
    expect(keys.lookups).toBeLessThan(50);
    await finish(Promise.all(waiting));
  });

  test("of keys that are sent again, 100 come first", async () => {
    const { keys, authenticate } = await setUp();
    const delayed = keys.delay();
    const waiting = secrets(1_016).map((unknown) => authenticate(unknown));
    const repeated = secrets(110);
    for (const secret of repeated) expect(authenticate(secret)).toBeInstanceOf(Unavailable);
    const again = repeated.map((secret) => authenticate(secret));
    expect(again.filter((result) => result instanceof Promise)).toHaveLength(100);
    delayed.end();
    await finish(Promise.all([...waiting, ...again]));
  });

  test("those that wait end without a lookup once their address is at its limit", async () => {
    const { keys, authenticate, exhaust } = await setUp();
    const delayed = keys.delay();
    const results = secrets(1_016).map((secret) => authenticate(secret));
    const other = authenticate(newSecret(), OTHER_CLIENT);
    expect(other).toBeInstanceOf(Unavailable);
    exhaust();
    delayed.end();
    const ended = await finish(Promise.all(results));
    const failures = ended.filter((result) => result instanceof Unavailable);
    // 50 of those that wait are looked up all the same.
    expect([failures.length, keys.lookups]).toEqual([950, 66]);
  });

  test("a key that was verified before does not wait behind them after a change", async () => {
    const { keys, reader, authenticate, exhaust } = await setUp();
    const { id, secret } = keys.create();
    authenticate(secret);
    const delayed = keys.delay();
    for (const unknown of secrets(1_016)) authenticate(unknown);
    exhaust();
    keys.update(id, { plan: "pro" });
    await reader.read();
    keys.respond = (found) => found;
    expect(authenticate(secret)).toMatchObject({ keyId: id, limits: DEFAULT_PLANS.pro });
    delayed.end();
  });
});

describe("lookups behind an address at its limit", () => {
  test("unknown keys are looked up until the limit is reached, then 50 at once and 100 a second", async () => {
    const { clock, count, exhaust, lookupsOf } = await setUp();
    for (let i = 0; i < 299; i++) count();
    expect(lookupsOf(secrets(500))).toBe(500);
    exhaust();
    expect(lookupsOf(secrets(500))).toBe(50);
    expect(lookupsOf(secrets(500))).toBe(0);
    clock.advance(100);
    expect(lookupsOf(secrets(500))).toBe(10);
    clock.advance(3_600_000);
    exhaust();
    expect(lookupsOf(secrets(500))).toBe(50);
  });

  test("another address is not affected", async () => {
    const { keys, authenticate, exhaust, lookupsOf } = await setUp();
    exhaust();
    lookupsOf(secrets(500));
    const { id, secret } = keys.create();
    expect(authenticate(secret)).toBeInstanceOf(Unavailable);
    expect(authenticate(secret, OTHER_CLIENT)).toMatchObject({ keyId: id });
  });

  test("a new valid key gets in within four requests, while others send 1,000 unknown keys a second", async () => {
    const { keys, clock, authenticate, exhaust, lookupsOf } = await setUp();
    for (let round = 0; round < 5; round++) {
      const { id, secret } = keys.create();
      const results: unknown[] = [];
      for (let second = 0; second < 4; second++, clock.advance(1_000)) {
        exhaust();
        lookupsOf(secrets(1_000));
        results.push(authenticate(secret));
      }
      expect(results).toContainEqual(expect.objectContaining({ keyId: id }));
    }
  });

  test("keys that are sent again and again get 100 lookups at once and 100 a second", async () => {
    const { keys, clock, exhaust, lookupsOf } = await setUp();
    exhaust();
    const sent = secrets(500);
    keys.respond = () => Promise.reject(new Unavailable("nothing is cached"));
    for (const lookups of [100, 200, 300]) {
      for (let i = 0; i < 20; i++) {
        lookupsOf(sent);
        await settle();
      }
      expect(keys.lookups).toBe(lookups);
      clock.advance(1_000);
    }
  });
});
