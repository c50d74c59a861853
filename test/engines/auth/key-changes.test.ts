import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { openStores } from "../../../src/adapters.ts";
import { type App, startApp } from "../../../src/app.ts";
import { followKeyChanges } from "../../../src/auth/key-changes.ts";
import { generateSecret, toNewSecret } from "../../../src/domain/api-keys.ts";
import type { KeyChange, RateLimiter } from "../../../src/domain/ports.ts";
import { DEFAULT_BAN } from "../../../src/domain/rate-limit.ts";
import { silentLog } from "../../../src/log.ts";
import { valkeyUrl } from "../../../harness/valkey.ts";
import { openWithoutFallback } from "../../rate-limit/open-valkey.ts";
import { configIn } from "../../service.ts";
import { temporaryFolder } from "../../store/temporary-folder.ts";
import { key } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";
import { MapKeyStore } from "../../auth/map-key-store.ts";
import { openAuthenticator } from "../../auth/open-authenticator.ts";
import { BY } from "../../key-store-arguments.ts";

const HOUR_MS = 3_600_000;

describe("an unban, on one server", () => {
  let app: App | undefined;
  let clock: TestClock;
  let dataDir: string;
  let secret: string;
  let perMinute: number;
  const folder = temporaryFolder();
  afterAll(() => folder.remove());

  const start = async () => void (app = await startApp(configIn(dataDir), { clock, log: silentLog }));
  const stop = async () => {
    await app?.close();
    app = undefined;
  };

  beforeEach(async () => {
    clock = new TestClock();
    secret = generateSecret("production");
    dataDir = folder.path(secret);
    perMinute = 1;
    await start();
    const limits = { perMinute, perDay: 100 };
    await app?.keys.createKey(
      { name: "test", plan: "enterprise", limits, createdAt: 0 },
      toNewSecret(secret),
      BY,
    );
  });
  afterEach(stop);

  async function send() {
    const response = await fetch(`${app?.url}/pets`, { headers: { Authorization: `Bearer ${secret}` } });
    const { code = "ok" } = (await response.json()) as { code?: string };
    return { code, limit: Number(response.headers.get("x-ratelimit-limit")) };
  }

  async function getBanned(): Promise<void> {
    while ((await send()).code === "ok");
    clock.advance(1_001);
    while ((await send()).code !== "key_banned");
  }

  /** Changes the key and its limits, and resolves to the first response by the new limits. */
  async function codeAfter(change: KeyChange) {
    const limits = { perMinute: ++perMinute, perDay: 100 };
    await app?.keys.updateKey(1, { ...change, limits }, BY);
    for (;;) {
      const { code, limit } = await send();
      if (limit === perMinute) return code;
      await Bun.sleep(5);
    }
  }

  async function changeWhileStopped(change: KeyChange): Promise<void> {
    await stop();
    const stores = await openStores(configIn(dataDir));
    await stores.keys.updateKey(1, change, BY);
    await stores.close();
    await start();
  }

  for (const [what, differenceMs] of [
    ["right", 0],
    ["an hour behind", -HOUR_MS],
    ["an hour ahead", HOUR_MS],
  ] as const) {
    test(`ends the ban, and no change of the key ends a later one; the operator's clock is ${what}`, async () => {
      await getBanned();
      expect(await codeAfter({})).toBe("key_banned");
      expect(await codeAfter({ unbannedAt: clock.now() + differenceMs })).toBe("ok");
      clock.advance(31_000);
      await getBanned();
      expect(await codeAfter({})).toBe("key_banned");
      expect(await codeAfter({})).toBe("key_banned");
    });
  }

  test("leaves a later ban after a restart", async () => {
    await getBanned();
    await codeAfter({ unbannedAt: clock.now() });
    clock.advance(31_000);
    await getBanned();
    await stop();
    await start();
    expect((await send()).code).toBe("key_banned");
    expect(await codeAfter({})).toBe("key_banned");
  });

  test("while the server is stopped ends the ban when it starts, and not a later one", async () => {
    await getBanned();
    clock.advance(1);
    await changeWhileStopped({ unbannedAt: clock.now() });
    expect((await send()).code).toBe("rate_limited");
    await getBanned();
    await stop();
    await start();
    expect((await send()).code).toBe("key_banned");
  });
});

/** Two servers on one key store and one Valkey. The clocks of the servers and of Valkey are a minute apart. */
describe("an unban, on two servers with Valkey", () => {
  const LIMITS = { perMinute: 1, perDay: 100 };
  const close: (() => unknown)[] = [];
  afterEach(async () => {
    for (const each of close.splice(0).toReversed()) await each();
  });

  async function setUp() {
    const url = await valkeyUrl();
    const keys = new MapKeyStore();
    const valkeyClock = new TestClock();
    const clocks = [
      new TestClock(valkeyClock.time - 60_000),
      new TestClock(valkeyClock.time + 60_000),
    ] as const;
    const start = async (clock: TestClock) => {
      const rateLimiter = await openWithoutFallback({ url, clock, testClock: valkeyClock, ban: DEFAULT_BAN });
      const server = { rateLimiter, isCutOff: false, polls: 0 };
      const authenticator = await openAuthenticator({
        keys: {
          findCredential: (hash) => keys.findCredential(hash),
          changesSince(revision) {
            server.polls++;
            if (server.isCutOff) throw new Error("cut off");
            return keys.changesSince(revision);
          },
        },
        clock,
      });
      const callbacks = { onChanges() {}, onUnreadable() {}, onReadable() {}, onUnbanError() {} };
      const { stop: stopFollowing } = followKeyChanges({ authenticator, rateLimiter, clock, ...callbacks });
      close.push(() => rateLimiter.close(), stopFollowing);
      return server;
    };
    const one = await start(clocks[0]);
    const other = await start(clocks[1]);
    const advance = (ms: number) => [valkeyClock, ...clocks].forEach((clock) => clock.advance(ms));
    const { id } = keys.create();
    const outcome = async () => (await one.rateLimiter.decide(key(id), LIMITS)).outcome;
    const getBanned = async () => {
      while ((await outcome()) === "allowed");
      advance(1_001);
      while ((await outcome()) !== "banned");
    };
    /** Resolves after both servers have polled and applied what they saw. */
    const polled = async () => {
      const before = [one.polls, other.polls] as const;
      while (one.polls < before[0] + 2 || other.polls < before[1] + 2) await Bun.sleep(5);
    };
    return { keys, id, valkeyClock, other, advance, outcome, getBanned, polled };
  }

  for (const differenceMs of [0, -60_000, 60_000]) {
    test(`ends the ban, and no change of the key ends a later one; the operator's clock is off by ${differenceMs} ms`, async () => {
      const { keys, id, valkeyClock, advance, outcome, getBanned, polled } = await setUp();
      await getBanned();
      await polled();
      keys.update(id, { unbannedAt: valkeyClock.now() + differenceMs });
      await polled();
      expect(await outcome()).toBe("limited");

      advance(31_000);
      await getBanned();
      keys.update(id, { plan: "pro" });
      await polled();
      expect(await outcome()).toBe("banned");
    }, 20_000);
  }

  test("that a server sees two minutes late leaves a later ban", async () => {
    const { keys, id, valkeyClock, other, advance, outcome, getBanned, polled } = await setUp();
    await getBanned();
    await polled();
    other.isCutOff = true;
    keys.update(id, { unbannedAt: valkeyClock.now() - 120_000 });
    await polled();
    expect(await outcome()).toBe("limited");

    advance(31_000);
    await getBanned();
    advance(89_000);
    other.isCutOff = false;
    await polled();
    expect(await outcome()).toBe("banned");
  }, 20_000);
});

describe("an unban that fails", () => {
  test("is tried again, is reported once, and does not stop the others", async () => {
    const keys = new MapKeyStore();
    const clock = new TestClock();
    const authenticator = await openAuthenticator({ keys, clock });
    const attempts: [unknown, number][] = [];
    const errors: string[] = [];
    const { promise: applied, resolve } = Promise.withResolvers<void>();
    const rateLimiter: Pick<RateLimiter, "unban"> = {
      unban({ id }, agoMs) {
        attempts.push([id, agoMs]);
        clock.advance(10);
        if (id === 2 && attempts.length < 5) throw new Error("a mistake");
        if (id === 2) resolve();
      },
    };
    for (const _ of "123") keys.update(keys.create().id, { unbannedAt: clock.now() });
    const { stop } = followKeyChanges({
      authenticator,
      rateLimiter,
      clock,
      onChanges() {},
      onUnreadable: () => errors.push("unreadable"),
      onReadable: () => errors.push("readable"),
      onUnbanError: (id, error) => errors.push(`${id}: ${error}`),
    });
    await applied;
    stop();
    expect(attempts).toEqual([
      [1, 0],
      [2, 10],
      [3, 20],
      [2, 30],
      [2, 40],
    ]);
    expect(errors).toEqual(["2: Error: a mistake"]);
  });
});
