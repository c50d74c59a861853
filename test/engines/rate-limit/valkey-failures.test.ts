import { afterAll, afterEach, describe, expect, jest, test } from "bun:test";
import { inspect } from "node:util";
import type { RateLimiter } from "../../../src/domain/ports/rate-limiter.ts";
import { sendToValkey, startValkey } from "../../../trials/harness/valkey.ts";
import { FREE } from "../../conformance/rate-limiter-fixture.ts";
import { advance, settle, useFakeTimers } from "../../fake-timers.ts";
import { key } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";
import {
  openWithFallback,
  openWithoutFallback,
  PATIENT,
  StateChanges,
} from "../../rate-limit/open-valkey.ts";

const ONCE = { perMinute: 1, perDay: 1 };

const server = await startValkey({ settings: { "enable-debug-command": "yes", databases: "4" } });
afterAll(() => server.stop());
/** The words of the command are separated by spaces. */
function send(command: string): Promise<string> {
  const [name = "", ...args] = command.split(" ");
  return sendToValkey(server.url, name, ...args);
}

const open: RateLimiter[] = [];
afterEach(async () => {
  for (const rateLimiter of open.splice(0)) await rateLimiter.close();
});

type Settings = Parameters<typeof openWithFallback>[0];

async function openWith(changes: StateChanges, settings: Settings): Promise<RateLimiter> {
  const rateLimiter = await openWithFallback({ ...settings, onStateChange: changes.onStateChange });
  open.push(rateLimiter);
  return rateLimiter;
}

/** Timers are those of the test, so only a server that is frozen is too slow. */
describe("a frozen server", () => {
  useFakeTimers();
  afterEach(() => server.thaw());

  const connect = (changes: StateChanges, settings: Partial<Settings>) =>
    openWith(changes, {
      url: server.url,
      clock: new TestClock(),
      backgroundTimeoutMs: 1_000_000_000,
      ...settings,
    });

  /** Lets time pass until the server is used again. */
  async function thaw(changes: StateChanges): Promise<void> {
    server.thaw();
    for (; changes.states.length < 2; await settle()) jest.advanceTimersByTime(250);
    expect(changes.states).toEqual(["unavailable", "available"]);
  }

  test("requests wait for 500 ms, later ones do not wait, and the server goes on with all counts", async () => {
    const changes = new StateChanges();
    const rateLimiter = await connect(changes, { prefix: "frozen:" });
    expect(await rateLimiter.decide(key(1), ONCE)).toMatchObject({ outcome: "allowed" });
    expect(await rateLimiter.decide(key(1), ONCE)).toMatchObject({ outcome: "limited" });
    await rateLimiter.decide(key(2), FREE);

    server.freeze();
    const waiting = Array.from({ length: 500 }, async (_, i) => rateLimiter.decide(key(i + 100), FREE));
    for (let tick = 0; tick < 10; tick++) await advance(50);
    expect(changes.states).toEqual([]);
    await advance(50);
    expect(changes.states).toEqual(["unavailable"]);
    const outcomes = (await Promise.all(waiting)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(Array.from({ length: 500 }, () => "allowed"));

    expect(await rateLimiter.decide(key(2), FREE)).toMatchObject({ outcome: "allowed", remaining: 58 });
    expect(await rateLimiter.decide(key(1), ONCE)).toMatchObject({ outcome: "limited" });
    await thaw(changes);
    expect(await rateLimiter.decide(key(2), FREE)).toMatchObject({ remaining: 57 });
    for (const id of [100, 101, 599]) {
      expect(await rateLimiter.decide(key(id), FREE)).toMatchObject({ remaining: 58 });
    }
  });
});

describe("another counter decides until the server works again:", () => {
  const connect = (changes: StateChanges, prefix: string) =>
    openWith(changes, { ...PATIENT, url: server.url, prefix });

  test.each([
    ["out of memory", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OOM"],
    ["a read-only replica", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "READONLY"],
  ])("%s", async (name, begin, end, cause) => {
    const changes = new StateChanges();
    const rateLimiter = await connect(changes, `${name}:`);
    await rateLimiter.decide(key(1), FREE);
    await send(begin);
    expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", remaining: 58 });
    expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", remaining: 57 });
    expect(inspect(changes.causes[0])).toContain(cause);

    await send(end);
    await changes.reach(2);
    expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", remaining: 56 });
    expect(changes.states).toEqual(["unavailable", "available"]);
  });

  test("loading its data", async () => {
    const changes = new StateChanges();
    const rateLimiter = await connect(changes, "loading:");
    await send("DEBUG POPULATE 2000 filler 100");
    await send("CONFIG SET key-load-delay 250");
    await send("CONFIG SET loading-process-events-interval-bytes 1024");
    const loaded = send("DEBUG RELOAD");
    while (changes.states.length === 0) await rateLimiter.decide(key(99), FREE);
    expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed" });
    await loaded;
    await changes.reach(2);
    await send("FLUSHALL");
  });

  test("killed and restarted, with one change each way", async () => {
    const changes = new StateChanges();
    const rateLimiter = await connect(changes, "killed:");
    const requests = Array.from({ length: 200 }, async (_, i) => rateLimiter.decide(key(i), FREE));
    await server.kill();
    const decisions = await Promise.all(requests);
    expect(decisions.every(({ outcome }) => outcome === "allowed")).toBe(true);
    await changes.reach(1);
    expect(await rateLimiter.decide(key(1), FREE)).toMatchObject({ outcome: "allowed" });

    await server.restart();
    await changes.reach(2);
    // The server saves nothing, so its counts are lost. It gets those of the outage.
    expect((await rateLimiter.decide(key(1), FREE)).remaining).toBeOneOf([57, 58]);
    expect(changes.states).toEqual(["unavailable", "available"]);
  });
});

test("SCRIPT FLUSH while requests are sent loses no request", async () => {
  const rateLimiter = await openWithoutFallback({ url: server.url, prefix: "flush:" });
  const remaining: number[] = [];
  for (let i = 0; i < 30; i++) {
    if (i % 3 === 0) await send("SCRIPT FLUSH");
    const decisions = await Promise.all([rateLimiter.decide(key(1), FREE), rateLimiter.decide(key(1), FREE)]);
    remaining.push(...decisions.map((decision) => decision.remaining));
  }
  expect(remaining).toEqual(Array.from({ length: 60 }, (_, i) => 59 - i));
  await rateLimiter.close();
});

test("the database of the address is used, and no other", async () => {
  const rateLimiter = await openWithoutFallback({ url: `${server.url}/3` });
  await rateLimiter.decide(key(1), FREE);
  expect(await sendToValkey(`${server.url}/3`, "DBSIZE")).toBe("1");
  await rateLimiter.close();
});
