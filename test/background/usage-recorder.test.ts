import { afterEach, describe, expect, jest, spyOn, test } from "bun:test";
import { join } from "node:path";
import { rateLimitStatus } from "../../trials/harness/api-client.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { startPetstore } from "../../trials/harness/petstore.ts";
import { Unavailable } from "../../src/api/errors.ts";
import type { UsageBatch, UsageRow } from "../../src/domain/usage-history.ts";
import type { OperationId } from "../../src/domain/operation-ids.ts";
import type { Decision } from "../../src/domain/rate-limit.ts";
import type { RequestRecord } from "../../src/observe/request-record.ts";
import { UsageRecorder } from "../../src/background/usage-recorder.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { silentLog } from "../../src/observe/log.ts";
import { startService, TestClock } from "../service.ts";
import { LOG_EVENTS } from "../../src/observe/log-events.ts";
import { advance, finish } from "../fake-timers.ts";
import { until } from "../timing.ts";

afterEach(() => void jest.useRealTimers());

const NOON = Date.parse("2026-11-15T12:00:00Z");
const HOUR_MS = 3_600_000;

/** Keeps the batches, and fails when it is told to: before a batch is added, or after it. */
class BatchStore {
  readonly batches: UsageBatch[] = [];
  readonly attempts: UsageBatch[] = [];
  fails: false | "before" | "after" = false;

  async addUsage(batch: UsageBatch): Promise<void> {
    this.attempts.push(batch);
    if (this.fails === "before") throw new Unavailable("down");
    const isNew = this.batches.every(
      ({ writer, sequence }) => writer !== batch.writer || sequence < batch.sequence,
    );
    if (isNew) this.batches.push(batch);
    if (this.fails === "after") throw new Unavailable("no response to COMMIT");
  }

  /** Requests by key. */
  get requests(): Record<number, number> {
    const sums: Record<number, number> = {};
    for (const { keyId, admitted, limited, banned } of this.batches.flatMap(({ keys }) => keys)) {
      sums[keyId] = (sums[keyId] ?? 0) + admitted + limited + banned;
    }
    return sums;
  }
}

function setUp({ maxCounters = 100 } = {}) {
  const clock = new TestClock(NOON);
  const store = new BatchStore();
  const events: unknown[] = [];
  const log = {
    ...silentLog,
    event: (name: string, { lostRequests }: { lostRequests?: number } = {}) =>
      void events.push(lostRequests === undefined ? name : [name, lostRequests]),
  };
  const recorder = new UsageRecorder({ store, clock, log, maxCounters });
  const request = (
    keyId: number,
    outcome: Decision["outcome"] = "allowed",
    operation?: OperationId,
    status = 200,
  ) => recorder.observe(recordOf({ keyId }, { outcome }, operation), { status } as never);
  return { clock, store, recorder, events, request };
}

const recordOf = (authentication: unknown, decision: unknown, operation?: OperationId) =>
  ({ authentication, decision, operation }) as RequestRecord;

describe("counting", () => {
  test("pages, requests without a valid key and requests without a decision are not counted", async () => {
    const { store, recorder } = setUp();
    const response = { status: 200 } as never;
    recorder.observe(recordOf(undefined, { outcome: "allowed" }), response);
    recorder.observe(recordOf("invalid_api_key", { outcome: "allowed" }), response);
    recorder.observe(recordOf(new Unavailable("down"), { outcome: "allowed" }), response);
    recorder.observe(recordOf({ keyId: 1 }, undefined), response);
    await recorder.close();
    expect(store.attempts).toEqual([]);
  });

  test("each hour has a batch of its own, also when the clock is set back", async () => {
    const { store, recorder, request, clock } = setUp();
    clock.advance(HOUR_MS - 1);
    request(1);
    clock.advance(1);
    request(1);
    request(1);
    clock.step(-HOUR_MS);
    request(1);
    await recorder.close();
    expect(store.batches.map(({ hour, keys }) => [hour - NOON, keys[0]?.admitted])).toEqual([
      [0, 1],
      [HOUR_MS, 2],
      [0, 1],
    ]);
  });
});

describe("saving", () => {
  test("a batch has at most 50 keys, in their order", async () => {
    const { store, recorder, request } = setUp({ maxCounters: 1_000 });
    for (let keyId = 125; keyId >= 1; keyId--) request(keyId);
    await recorder.save();
    expect(store.batches.map(({ keys, sequence }) => [keys.length, sequence])).toEqual([
      [50, 1],
      [50, 2],
      [25, 3],
    ]);
    const ids = store.batches.flatMap(({ keys }) => keys.map(({ keyId }) => keyId));
    expect(ids).toEqual(Array.from({ length: 125 }, (_, i) => i + 1));
    await recorder.close();
    expect(store.batches).toHaveLength(3);
  });

  test("while the store fails, counts are kept, and are saved once it works again", async () => {
    const { store, recorder, request, events } = setUp();
    request(1);
    store.fails = "before";
    expect(await recorder.save()).toBe(false);
    request(1);
    request(2);
    expect(await recorder.save()).toBe(false);
    expect(events).toEqual(["usage-history.save-failed"]);
    // It needs nobody: nothing is lost.
    expect(LOG_EVENTS["usage-history.save-failed"].level).toBe("warn");
    store.fails = false;
    expect(await recorder.save()).toBe(true);
    expect(store.requests).toEqual({ 1: 2, 2: 1 });
    expect(events.slice(1)).toEqual([["usage-history.saved-again", 0]]);
    await recorder.close();
  });

  test("a batch that may have been added is repeated as it is, so that it counts once", async () => {
    const { store, recorder, request } = setUp();
    request(1);
    store.fails = "after";
    await recorder.save();
    request(1);
    store.fails = false;
    await recorder.close();
    expect(store.attempts[1]).toEqual(store.attempts[0] as never);
    expect(store.requests).toEqual({ 1: 2 });
  });

  test("the memory for counts is bounded: what does not fit is lost and reported", async () => {
    const { store, recorder, request, events, clock } = setUp({ maxCounters: 3 });
    store.fails = "before";
    request(1);
    await recorder.save();
    clock.advance(HOUR_MS);
    for (const keyId of [1, 2, 3, 4, 1, 2, 3]) request(keyId);
    await recorder.save();
    store.fails = false;
    await recorder.save();
    expect(store.requests).toEqual({ 1: 3, 2: 2 });
    expect(events.splice(0)).toEqual([
      "usage-history.save-failed",
      ["usage-history.saved-again", 3],
      ["usage-history.requests-lost", 3],
    ]);
    // There is room again, and nothing more is lost.
    for (const keyId of [5, 6, 7]) request(keyId);
    store.fails = "before";
    await recorder.save();
    store.fails = false;
    await recorder.close();
    expect(store.requests).toEqual({ 1: 3, 2: 2, 5: 1, 6: 1, 7: 1 });
    expect(events).toEqual(["usage-history.save-failed", ["usage-history.saved-again", 0]]);
  });

  test("requests that arrive while a save runs are in the next one", async () => {
    const { store, recorder, request, events } = setUp();
    request(1);
    const saved = recorder.save();
    request(1);
    request(2);
    await saved;
    await recorder.close();
    expect(store.requests).toEqual({ 1: 2, 2: 1 });
    expect(events).toEqual([]);
  });

  test("happens every two seconds, and half a second after a failure", async () => {
    jest.useFakeTimers();
    const { store, recorder, request } = setUp();
    request(1);
    store.fails = "before";
    for (const [ms, attempts] of [
      [1_999, 0],
      [1, 1],
      [499, 1],
      [1, 2],
    ] as const) {
      await advance(ms);
      expect(store.attempts).toHaveLength(attempts);
    }
    store.fails = false;
    await advance(500);
    request(1);
    await advance(1_999);
    expect(store.requests).toEqual({ 1: 1 });
    await advance(1);
    expect(store.requests).toEqual({ 1: 2 });
    await finish(recorder.close());
  });

  test("close: fails after three seconds with the number of requests that are missing", async () => {
    const { store, recorder, request } = setUp();
    request(1);
    request(2, "limited");
    store.fails = "before";
    let now = 0;
    const clock = spyOn(performance, "now").mockImplementation(() => now);
    const closing = recorder.close().catch((error: unknown) => error);
    const attemptsAt = async (ms: number) => {
      now = ms;
      const { length } = store.attempts;
      await until(() => store.attempts.length >= length + 2, 10_000);
    };
    await attemptsAt(2_999);
    now = 3_000;
    expect(await closing).toMatchObject({ message: "2 requests are missing in the usage history" });
    clock.mockRestore();
  });
});

test("a server counts every outcome by operation, exact after a clean stop, and nothing without a valid key", async () => {
  await using service = await startService();
  const { id, secret: key } = await service.newKey({ limits: { perMinute: 6, perDay: 100 } });
  const statuses: number[] = [];
  const call = async (path: string, init: { method?: string; body?: unknown; key?: string | null } = {}) =>
    statuses.push((await service.call({ path, key, ...init })).status);
  await call("/pets");
  await call("/pets?limit=0");
  await call("/pets", { method: "POST", body: { name: "Rex", categoryId: 1 } });
  await call("/pets/99");
  await call("/no-such-path");
  await call("/pets", { method: "DELETE" });
  await call("/pets");
  for (let i = 0; i < 12; i++) {
    service.clock.advance(1_001);
    await call("/pets");
  }
  expect(statuses.slice(0, 7)).toEqual([200, 400, 201, 404, 404, 405, 429]);
  await call("/pets", { key: null });
  await call("/pets", { key: "pet_live_wrong" });
  await service.restart();

  const expected = (operation: UsageRow["operation"], counts: Partial<UsageRow>) => ({
    keyId: id,
    start: NOON,
    operation,
    admitted: 0,
    limited: 0,
    banned: 0,
    errors: 0,
    ...counts,
  });
  const { usageHistory } = service.app;
  expect(await usageHistory.readUsage({ keyId: id, by: "hour", since: NOON, until: NOON })).toStrictEqual([
    expected("listPets", { admitted: 2, errors: 1 }),
    expected("createPet", { admitted: 1 }),
    expected("getPet", { admitted: 1, errors: 1 }),
    // The tenth strike is a ban.
    expected("none", { admitted: 2, limited: 10, banned: 3, errors: 2 }),
  ]);
  expect(await usageHistory.lastUsed([id])).toEqual(new Map([[id, NOON + 12 * 1_001]]));
});

test("counts that are stored survive SIGKILL, and SIGTERM loses none", async () => {
  const data = temporaryDirectory("usage-history");
  const flags = ["--data", data, "--port", "0", "--admin-address", "off"];
  const killed = await startPetstore(flags);
  const key = killed.key ?? "";
  const { usageHistory, close } = openSqlite(join(data, "production.db"));
  const admitted = async () => {
    const [totals] = await usageHistory.usageByKey({ by: "day", since: 0, until: Date.now() });
    return totals?.admitted ?? 0;
  };
  for (let i = 0; i < 20; i++) await rateLimitStatus(killed.url, key);
  await until(async () => (await admitted()) >= 20, 10_000);
  await killed.stop("SIGKILL");

  const stopped = await startPetstore(flags);
  for (let i = 0; i < 5; i++) await rateLimitStatus(stopped.url, key);
  expect(await stopped.stop("SIGTERM")).toBe(0);
  expect(await admitted()).toBe(25);
  await close();
});
