import { Database } from "bun:sqlite";
import { expect, spyOn } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { fillUsageStatements, SQLITE_NUMBERS } from "../../bench/skewed-rows.ts";
import { stopOnSignals } from "../../src/cli/terminal.ts";
import { followFiles } from "../../src/config/follow-files.ts";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import type { UsageBatch } from "../../src/domain/usage-history.ts";
import { silentLog } from "../../src/observe/log.ts";
import type { RequestRecord } from "../../src/observe/request-record.ts";
import { UsageRecorder } from "../../src/background/usage-recorder.ts";
import { MemoryRateLimiter } from "../../src/rate-limit/memory-rate-limiter.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { followSilently } from "../auth/open-authenticator.ts";
import { advance } from "../fake-timers.ts";
import { MapQuotaStore } from "../rate-limit/map-quota-store.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { key } from "../subjects.ts";
import { TestClock } from "../test-clock.ts";

/* Proofs of promised times. Each moves the timers of the process by exactly the time that is promised. */

export async function usageIsStoredWithin5Seconds(): Promise<void> {
  const batches: UsageBatch[] = [];
  const clock = new TestClock();
  const store = { addUsage: async (batch: UsageBatch) => void batches.push(batch) };
  const recorder = new UsageRecorder({ store, clock, log: silentLog });
  const request = { authentication: { keyId: 7 }, decision: { outcome: "allowed" } };
  recorder.observe(request as RequestRecord, { status: 200 } as never);
  await advance(5_000);
  expect(batches.flatMap(({ keys }) => keys.map(({ keyId }) => keyId))).toEqual([7]);
  await recorder.close();
}

export async function quotaIsStoredWithinASecond(): Promise<void> {
  const quotaStore = new MapQuotaStore();
  const rateLimiter = new MemoryRateLimiter({ clock: new TestClock(), ban: () => DEFAULT_BAN, quotaStore });
  rateLimiter.decide(key(1), { perMinute: 5, perDay: 5 });
  await advance(1_000);
  expect(quotaStore.find(key(1))).toMatchObject({ day: { used: 1 } });
  await rateLimiter.close();
}

export async function lostDatabaseIsSavedWithinASecond(): Promise<void> {
  using directory = disposableDirectory();
  const path = directory.path("a.db");
  let isRescued = false;
  const rescue = { to: `${path}.rescued`, onRescue: () => (isRescued = true), onFailure() {} };
  const { clientStore, close } = openSqlite(path, { rescue });
  const created = clientStore.createPet({ name: "Rex", categoryId: 1n }, 0);
  await advance(10);
  await created;
  rmSync(path);
  await advance(1_000);
  expect(isRescued).toBe(true);
  const closed = close();
  await advance(10);
  await closed;
}

/** A poll that begins within a second shows a revocation, in whichever moment after the last one it was made. */
export async function keyChangesAreReadWithinASecond(): Promise<void> {
  const read: number[] = [];
  const nothing = { after: 0, changed: [], hasChanged: false, hasQuestions: false };
  const clock = new TestClock();
  const follower = followSilently({
    reader: { read: async () => (read.push(1), nothing) },
    authenticator: { keysChanged() {} },
    clock,
  });
  for (let second = 1; second <= 3; second++) {
    await advance(1_000);
    expect(read.length).toBeGreaterThanOrEqual(second);
  }
  expect(follower.whenCurrent(performance.now())).toBeUndefined();
  expect(follower.whenCurrent(performance.now() + 1_001)).toBeInstanceOf(Promise);
  follower.close();
}

export async function filesAreReadWithin3Seconds(): Promise<void> {
  using directory = disposableDirectory();
  const path = directory.path("secret");
  writeFileSync(path, "one");
  const read: string[] = [];
  const stop = followFiles([path], {
    read: () => "read",
    onChange: (text) => void read.push(text),
    onError: (error) => expect.unreachable(String(error)),
  });
  writeFileSync(path, "another");
  await advance(3_000);
  stop();
  expect(read).toEqual(["read"]);
}

export async function serverStopsWithin10Seconds(): Promise<void> {
  const exits: unknown[] = [];
  let signalled: (signal: "SIGTERM") => void = () => {};
  const spies = [
    spyOn(process, "exit").mockImplementation((code) => exits.push(code) as never),
    spyOn(process.stderr, "write").mockImplementation(() => true),
    spyOn(process, "on").mockImplementation(((signal: string, listener: typeof signalled) => {
      if (signal === "SIGTERM") signalled = listener;
    }) as never),
  ];
  const stopped = stopOnSignals(0, "");
  signalled("SIGTERM");
  await stopped;
  await advance(10_000);
  for (const spy of spies) spy.mockRestore();
  expect(exits).toEqual([1]);
}

/** The rows of a key that calls three operations in every hour, for as long as they are kept. */
export async function aKeyTakes110KilobytesOfSqlite(): Promise<void> {
  using directory = disposableDirectory();
  const path = directory.path("a.db");
  const closed = openSqlite(path).close();
  await advance(10);
  await closed;
  using database = new Database(path);
  database.run("PRAGMA foreign_keys = OFF");
  const bytes = () => Number(Object(database.query("PRAGMA page_count").get()).page_count) * 4_096;
  const keys = 10;
  const before = bytes();
  const history = { keys, days: 400, hours: 35 * 24 };
  for (const statement of fillUsageStatements(history, SQLITE_NUMBERS, Date.parse("2026-11-15T12:00:00Z")))
    database.run(statement);
  expect((bytes() - before) / keys / 1_000).toBeWithin(90, 130);
}
