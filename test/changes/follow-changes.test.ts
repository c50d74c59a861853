import { afterAll, describe, expect, test } from "bun:test";
import { openStores } from "../../src/adapters/open-stores.ts";
import { startApp } from "../../src/app.ts";
import { WaitingUnbans } from "../../src/changes/waiting-unbans.ts";
import { generateSecret, toNewSecret } from "../../src/domain/secrets.ts";
import type { RateLimiter } from "../../src/domain/ports/rate-limiter.ts";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import { silentLog } from "../../src/observe/log.ts";
import { MemoryRateLimiter } from "../../src/rate-limit/memory-rate-limiter.ts";
import { Process, World } from "../../trials/simulation/world.ts";
import { bearer } from "../bearer.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";
import { BY } from "../key-store-arguments.ts";
import { configIn } from "../service.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { TestClock } from "../test-clock.ts";
import { MapKeyStore } from "../auth/map-key-store.ts";
import { CLIENT, followSilently, openAuthenticator } from "../auth/open-authenticator.ts";
import { followOn, testUnbans } from "./unban-cases.ts";
import { until } from "../timing.ts";

const HOUR_MS = 3_600_000;
const directory = disposableDirectory();
afterAll(() => directory.remove());

testUnbans([0, -HOUR_MS, HOUR_MS], () => {
  const clock = new TestClock();
  const rateLimiter = new MemoryRateLimiter({ clock, ban: () => DEFAULT_BAN });
  return followOn([{ clock, rateLimiter }], clock);
});

test("an unban in the store ends the ban on a server that runs or starts, and none after a later restart", async () => {
  const clock = new TestClock();
  const config = configIn(directory.path("data"));
  const secret = generateSecret("production");
  const start = () => startApp(config, { clock, log: silentLog });
  let app = await start();
  const limits = { perMinute: 1, perDay: 100 };
  const draft = { name: "test", plan: "enterprise", limits, createdAt: 0 } as const;
  await app.keys.createKey(draft, toNewSecret(secret), BY);
  const send = async () => {
    const response = await fetch(`${app.url}/pets`, { headers: bearer(secret) });
    const { code = "ok" } = (await response.json()) as { code?: string };
    return code;
  };
  const getBanned = async () => {
    while ((await send()) === "ok");
    while ((await send()) !== "key_banned") clock.advance(1_001);
  };

  await getBanned();
  clock.advance(1);
  await app.keys.updateKey(1, { unbannedAt: clock.now() }, BY);
  await until(async () => (await send()) !== "key_banned", 10_000);
  clock.advance(10_000);
  await getBanned();
  await app.close();
  app = await start();
  expect(await send()).toBe("key_banned");

  await app.close();
  clock.advance(1);
  const stores = await openStores(config.data);
  await stores.keys.updateKey(1, { unbannedAt: clock.now() }, BY);
  await stores.close();
  app = await start();
  expect(await send()).toBe("rate_limited");
  await getBanned();
  await app.close();
  app = await start();
  expect(await send()).toBe("key_banned");
  await app.close();
});

test("an unban that fails is tried again, is reported once, and does not stop the others", async () => {
  const keys = new MapKeyStore();
  const clock = new TestClock();
  const { authenticator, reader } = await openAuthenticator({ keys, clock });
  const attempts: [unknown, number][] = [];
  const errors: string[] = [];
  const rateLimiter: Pick<RateLimiter, "unban"> = {
    unban({ id }, agoMs) {
      attempts.push([id, agoMs]);
      clock.advance(10);
      if (id === 2 && attempts.length < 5) throw new Error("a mistake");
    },
  };
  for (const _ of "123") keys.update(keys.create().id, { unbannedAt: clock.now() });
  const { applyNow, close } = followSilently({
    authenticator,
    reader,
    rateLimiter,
    clock,
    onUnreadable: () => errors.push("unreadable"),
    onReadable: () => errors.push("readable"),
    onUnbanError: (id, error) => errors.push(`${id}: ${error}`),
  });
  for (let poll = 0; poll < 4; poll++) await applyNow();
  close();
  expect(attempts).toEqual([
    [1, 0],
    [2, 10],
    [3, 20],
    [2, 30],
    [2, 40],
  ]);
  expect(errors).toEqual(["2: Error: a mistake"]);
});

test("a second unban of a key that arrives while the first one is applied is applied, too", async () => {
  const clock = new TestClock();
  const applied: number[] = [];
  const first = Promise.withResolvers<void>();
  const unbans = new WaitingUnbans({
    clock,
    rateLimiter: {
      async unban(_, agoMs) {
        applied.push(agoMs);
        if (applied.length === 1) await first.promise;
      },
    },
    onUnbanError: () => {},
  });
  const unbanNow = () => unbans.add({ id: 1, unbannedAt: clock.now() }, clock.steadyNow());
  unbanNow();
  const applying = unbans.apply();
  clock.advance(50);
  unbanNow();
  first.resolve();
  await applying;
  await unbans.applyNow();
  expect(applied).toEqual([0, 0]);
  await unbans.applyNow();
  expect(applied).toHaveLength(2);
});

test("a key that this process has changed is looked up again although the changes cannot be read", async () => {
  const keys = new MapKeyStore();
  const clock = new TestClock();
  const [changed, other] = [keys.create(), keys.create()];
  const { authenticator, reader } = await openAuthenticator({ keys, clock });
  const { applyNow, close } = followSilently({ authenticator, reader, clock });
  const use = ({ secret }: typeof changed) => authenticator.authenticate(`Bearer ${secret}`, CLIENT);
  for (const each of [changed, other]) expect(await use(each)).toMatchObject({ keyId: each.id });
  keys.isCutOff = true;
  keys.update(changed.id, { revokedAt: clock.now() });
  await applyNow(changed.id);
  expect(await use(changed)).toBe("invalid_api_key");
  const { lookups } = keys;
  expect(await use(other)).toMatchObject({ keyId: other.id });
  expect(keys.lookups).toBe(lookups);
  close();
});

describe("changes", () => {
  useFakeTimers();

  test("are read every 250 ms until the stop; unbans come apart, and each outage is reported once", async () => {
    const keys = new MapKeyStore();
    const clock = new TestClock();
    const [changed, unbanned] = [keys.create(), keys.create()];
    const { authenticator, reader } = await openAuthenticator({ keys, clock });
    const seen: string[] = [];
    const { close } = followSilently({
      authenticator,
      reader,
      rateLimiter: { unban: ({ id }, agoMs) => void seen.push(`unban ${id}, ${agoMs} ms ago`) },
      clock,
      onChanges: (list) => seen.push(...list.map(({ id }) => `change ${id}`)),
      onUnreadable: (error) => seen.push(String(error)),
      onReadable: () => seen.push("readable"),
    });
    clock.advance(60_000);
    keys.update(changed.id, { plan: "pro" });
    keys.update(unbanned.id, { unbannedAt: clock.now() - 5_000 });
    await advance(249);
    expect(seen).toEqual([]);
    await advance(1);
    expect(seen.splice(0)).toEqual(["change 1", "unban 2, 5000 ms ago"]);

    keys.isCutOff = true;
    await advance(250);
    expect(seen).toEqual(["Error: cut off"]);
    await advance(250);
    keys.isCutOff = false;
    for (let poll = 0; poll < 2; poll++) await advance(250);
    expect(seen.splice(0)).toEqual(["Error: cut off", "readable"]);

    close();
    keys.update(changed.id, { plan: "free" });
    await advance(1_000);
    expect(seen).toEqual([]);
  });
});

/** A server whose polls the test answers. */
async function openPolled() {
  const world = new World();
  const process = new Process(world, "server");
  const keys = new MapKeyStore();
  const { id } = keys.create();
  const waiting: { readonly answer: () => void; readonly fail: () => void }[] = [];
  let hangs = false;
  const { authenticator, reader } = await openAuthenticator({
    keys: {
      findCredential: (hash) => keys.findCredential(hash),
      changesSince(revision) {
        const changes = keys.changesSince(revision);
        if (!hangs) return changes;
        return new Promise((resolve, reject) =>
          waiting.push({ answer: () => resolve(changes), fail: () => reject(new Error("no response")) }),
        );
      },
    },
    clock: process.clock,
  });
  const changed: string[] = [];
  const { whenCurrent } = followSilently({
    authenticator,
    reader,
    clock: process.clock,
    onChanges: (list) => changed.push(...list.map(({ plan }) => plan)),
    onUnreadable: () => changed.push("unreadable"),
    scheduler: process,
  });
  world.run(300);
  /** Sends a request. Returns how long it waits, once it is known. */
  const request = () => {
    const startedAt = process.now();
    const result: { waitedMs?: number } = {};
    const current = whenCurrent(startedAt);
    if (current === undefined) result.waitedMs = 0;
    else void current.then(() => (result.waitedMs = process.now() - startedAt));
    return result;
  };
  return {
    keys,
    id,
    world,
    process,
    waiting,
    changed,
    request,
    hang: (does: boolean) => (hangs = does),
  };
}

describe("what is cached", () => {
  test("is used without a wait within a second of a poll, and after a pause when a poll has ended", async () => {
    const { process, world, request } = await openPolled();
    for (let i = 0; i < 20; i++) {
      world.run(100);
      expect(request()).toEqual({ waitedMs: 0 });
    }
    process.block(1_000);
    world.run(1);
    const result = request();
    world.run(2_000);
    expect(result.waitedMs).toBe(0);
  });

  test("is read every 250 ms while the database hangs, in up to eight polls at once", async () => {
    const { world, waiting, hang } = await openPolled();
    hang(true);
    world.run(199);
    for (const polls of [1, 2, 3, 4, 5, 6, 7, 8, 8, 8]) {
      world.run(polls === 1 ? 1 : 250);
      await Promise.resolve();
      expect(waiting).toHaveLength(polls);
    }
    for (const { fail } of waiting.splice(0, 1)) fail();
    world.run(250);
    await Promise.resolve();
    expect(waiting).toHaveLength(8);
  });

  test("is used after 1.25 s of waiting while the database hangs, and at once when that is known", async () => {
    const { world, request, waiting, hang } = await openPolled();
    hang(true);
    // The last poll began 50 ms before.
    world.run(950);
    expect(request()).toEqual({ waitedMs: 0 });
    world.run(51);
    const first = request();
    world.run(1_150);
    expect(first.waitedMs).toBe(1_150);
    expect(request()).toEqual({ waitedMs: 0 });
    world.run(1_850);
    for (const { fail } of waiting.splice(0)) fail();
    world.run(1);
    const next = request();
    world.run(300);
    expect(next.waitedMs).toBe(250);
  });

  test("changes within a second although polls hang, and a result that comes later undoes nothing", async () => {
    const { keys, id, world, waiting, changed, hang } = await openPolled();
    hang(true);
    keys.update(id, { plan: "pro" });
    world.run(750);
    expect(waiting.length).toBeGreaterThanOrEqual(2);
    hang(false);
    keys.update(id, { plan: "business" });
    world.run(250);
    expect(changed).toEqual(["business"]);
    waiting.shift()?.fail();
    for (const { answer } of waiting.splice(0)) answer();
    world.run(500);
    expect(changed).toEqual(["business"]);
  });
});
