import { expect } from "bun:test";
import * as fc from "fast-check";
import { OPERATION_IDS } from "../../src/domain/operation-ids.ts";
import type { UsageHistoryStore } from "../../src/domain/ports/usage-history.ts";
import {
  type KeyCounts,
  type KeyTotals,
  type KeyTotalsQuery,
  type RequestCounts,
  USAGE_INTERVALS,
  type UsageBatch,
  type UsageInterval,
  type UsagePeriod,
  type UsageQuery,
  type UsageRow,
} from "../../src/domain/usage-history.ts";
import { BY, storedSecret } from "../key-store-arguments.ts";
import { DAY_MS, type TestCase } from "./store-fixture.ts";

const HOUR_MS = 3_600_000;
const HOUR = Date.UTC(2026, 10, 15, 9);
const DAY = Date.UTC(2026, 10, 15);

/** Ten admitted requests of two operations and of none, two errors, three limited and one banned. */
const counts = (keyId: number, change: Partial<KeyCounts> = {}): KeyCounts => ({
  keyId,
  admitted: 10,
  limited: 3,
  banned: 1,
  errors: 2,
  lastUsedAt: HOUR + 5_000,
  byOperation: [
    { operation: "listPets", admitted: 6, errors: 0 },
    { operation: "createPet", admitted: 3, errors: 1 },
  ],
  ...change,
});

let sequence = 0;
const batch = (keys: readonly KeyCounts[], change: Partial<UsageBatch> = {}): UsageBatch => ({
  writer: "server",
  sequence: ++sequence,
  hour: HOUR,
  keys,
  ...change,
});

const byDay = { by: "day", since: HOUR, until: HOUR } as const;

const startOf = (by: UsageInterval, time: number) => time - (time % (by === "hour" ? HOUR_MS : DAY_MS));

const sumOf = <Name extends keyof RequestCounts>(all: readonly Pick<RequestCounts, Name>[], name: Name) =>
  all.reduce((sum, each) => sum + each[name], 0);
const sumsOf = (all: readonly RequestCounts[]) => ({
  admitted: sumOf(all, "admitted"),
  limited: sumOf(all, "limited"),
  banned: sumOf(all, "banned"),
  errors: sumOf(all, "errors"),
});

interface Used extends KeyCounts {
  readonly by: UsageInterval;
  readonly start: number;
}

/** What docs/usage-history.md says, computed anew from all that was added for each read. */
class Model {
  /** The last batch of each process. */
  readonly last = new Map<string, UsageBatch>();
  readonly #all: KeyCounts[] = [];
  #kept: Used[] = [];

  add(batch: UsageBatch): void {
    if (this.last.get(batch.writer) === batch) return;
    this.last.set(batch.writer, batch);
    this.#all.push(...batch.keys);
    for (const by of USAGE_INTERVALS)
      this.#kept.push(
        ...batch.keys.map((each) => Object.assign({ by, start: startOf(by, batch.hour) }, each)),
      );
  }

  deleteOld(now: number): void {
    const days = { hour: 35, day: 400 };
    this.#kept = this.#kept.filter(({ by, start }) => start >= startOf(by, now) - days[by] * DAY_MS);
    this.last.clear();
  }

  rows({ keyId, ...period }: UsageQuery): UsageRow[] {
    const own = this.#in(period).filter((each) => each.keyId === keyId);
    const starts = [...new Set(own.map(({ start }) => start))].toSorted((a, b) => a - b);
    return starts.flatMap((start) => {
      const all = own.filter((each) => each.start === start);
      const calls = all.flatMap(({ byOperation }) => byOperation);
      const rows: UsageRow[] = OPERATION_IDS.flatMap((operation) => {
        const some = calls.filter((each) => each.operation === operation);
        const counts = { admitted: sumOf(some, "admitted"), errors: sumOf(some, "errors") };
        return some.length === 0 ? [] : { keyId, start, operation, limited: 0, banned: 0, ...counts };
      });
      const rest = { keyId, start, operation: "none" as const, ...sumsOf(all) };
      rest.admitted -= sumOf(rows, "admitted");
      rest.errors -= sumOf(rows, "errors");
      return rest.admitted + rest.limited + rest.banned > 0 ? rows.concat(rest) : rows;
    });
  }

  totals({ limit, ...period }: KeyTotalsQuery): KeyTotals[] {
    const used = this.#in(period);
    const totals = [...new Set(used.map(({ keyId }) => keyId))].map((keyId) => {
      const counts = sumsOf(used.filter((each) => each.keyId === keyId));
      const key = keyId === 1 ? ({ name: "app", plan: "pro" } as const) : { name: null, plan: null };
      const lastUsedAt = this.lastUsed([keyId]).get(keyId) ?? null;
      return Object.assign({ keyId, lastUsedAt }, key, counts);
    });
    const requests = (each: RequestCounts) => each.admitted + each.limited + each.banned;
    return totals.toSorted((a, b) => requests(b) - requests(a) || a.keyId - b.keyId).slice(0, limit);
  }

  lastUsed(keyIds: readonly number[]): Map<number, number> {
    const used = this.#all.filter(({ keyId }) => keyIds.includes(keyId));
    const ascending = used.toSorted((a, b) => a.lastUsedAt - b.lastUsedAt);
    return new Map(ascending.map(({ keyId, lastUsedAt }) => [keyId, lastUsedAt]));
  }

  deprecatedSince(since: number): number {
    const isDeprecated = ({ byOperation, lastUsedAt }: KeyCounts) =>
      lastUsedAt >= since && byOperation.some(({ operation }) => operation === "getPet");
    return new Set(this.#all.filter(isDeprecated).map(({ keyId }) => keyId)).size;
  }

  #in({ by, since, until }: UsagePeriod): Used[] {
    return this.#kept.filter(
      (each) => each.by === by && each.start >= startOf(by, since) && each.start <= until,
    );
  }
}

/** Hours before the last, where hours, days and what is kept begin and end. */
const someTime = fc
  .tuple(fc.constantFrom(0, 1, 9, 10, 33, 34, 839, 840, 9_609, 9_610), fc.constantFrom(0, 1, HOUR_MS - 1))
  .map(([hours, ms]) => HOUR - hours * HOUR_MS + ms);
/** Some are beyond 32 bits. */
const someCount = fc.constantFrom(0, 1, 7, 5_000_000_001);
const someOperations = fc.uniqueArray(
  fc.record({
    operation: fc.constantFrom(...OPERATION_IDS.slice(0, 3)),
    admitted: someCount,
    errors: fc.nat(3),
  }),
  { selector: ({ operation }) => operation },
);
const someCounts = fc
  .record({
    keyId: fc.integer({ min: 1, max: 4 }),
    byOperation: someOperations,
    others: someCount,
    limited: someCount,
    banned: fc.nat(2),
    lastUsedAt: someTime,
  })
  .map(({ others, ...rest }): KeyCounts => {
    const admitted = others + sumOf(rest.byOperation, "admitted");
    const errors = Math.min(others, 1) + sumOf(rest.byOperation, "errors");
    return Object.assign({ admitted, errors }, rest);
  });
const someStep = fc.record({
  writer: fc.constantFrom("a", "b"),
  isRepeated: fc.boolean(),
  isCleanUp: fc.nat(20).map((chance) => chance === 0),
  keys: fc.uniqueArray(someCounts, { selector: ({ keyId }) => keyId }),
  hour: someTime.map((time) => startOf("hour", time)),
  by: fc.constantFrom(...USAGE_INTERVALS),
  since: someTime,
  until: someTime,
  limit: fc.constantFrom(1, 2, 9),
});

/** The starts of the intervals in which key 1 was used. */
async function startsOf(history: UsageHistoryStore, period: UsagePeriod): Promise<number[]> {
  const rows = await history.readUsage({ keyId: 1, ...period });
  return [...new Set(rows.map(({ start }) => start))];
}

/** What every UsageHistoryStore does, on whatever database. */
export function usageHistoryConformance(test: TestCase): void {
  test("what was added, in any order and repeatedly, is read as from a model made of an array", async (opened) => {
    const { usageHistory: history, keys: keyStore, another } = opened;
    await keyStore.createKey({ name: "app", plan: "pro", createdAt: HOUR }, storedSecret(0), BY);
    const { usageHistory: other } = await another();
    const model = new Model();
    const steps = fc.array(someStep, { minLength: 120, maxLength: 120 });
    const agrees = fc.asyncProperty(steps, async (steps) => {
      for (const { writer, isRepeated, isCleanUp, keys, hour, ...query } of steps) {
        const repeated = isRepeated ? model.last.get(writer) : undefined;
        const given = repeated ?? batch(keys, { writer, hour });
        await (repeated ? other : history).addUsage(given);
        model.add(given);
        if (isCleanUp) {
          while (await history.deleteOldUsage(query.until));
          model.deleteOld(query.until);
        }
        const ofKey = { ...query, keyId: 1 };
        expect(await history.readUsage(ofKey)).toStrictEqual(model.rows(ofKey));
        expect(await history.usageByKey(query)).toStrictEqual(model.totals(query));
        expect(await history.lastUsed([1, 2])).toEqual(model.lastUsed([1, 2]));
        expect(await history.countDeprecatedUse(query.since)).toBe(model.deprecatedSince(query.since));
      }
    });
    await fc.assert(agrees, { numRuns: 1, endOnFailure: true });
  });

  test("addUsage: processes that add to the same keys at the same time add up, and each batch once", async (opened) => {
    const { usageHistory: history, another } = opened;
    const stores = [history, (await another()).usageHistory, (await another()).usageHistory];
    const keys = Array.from({ length: 50 }, (_, i) => counts(i + 1));
    const shuffled = () => keys.toSorted(() => Math.random() - 0.5);
    for (let round = 1; round <= 5; round++) {
      const add = async (store: UsageHistoryStore, i: number) => {
        const each = batch(shuffled(), { writer: `server ${i}`, sequence: round });
        // It was sent before, on a connection that broke.
        await Promise.all([store, stores[0]].map((sent) => sent?.addUsage(each)));
      };
      await Promise.all(stores.map(add));
    }
    const totals = await history.usageByKey(byDay);
    expect(totals.map(({ keyId }) => keyId)).toEqual(keys.map(({ keyId }) => keyId));
    for (const total of totals) {
      expect(total).toMatchObject({ admitted: 150, limited: 45, banned: 15, errors: 30 });
    }
  });

  test("deleteOldUsage: hours are kept for 35 days, days for 400 days, and the last use for good", async (opened) => {
    const { usageHistory: history } = opened;
    const kept = { hour: HOUR - 35 * DAY_MS, day: DAY - 400 * DAY_MS };
    for (const hour of [kept.hour, kept.hour - HOUR_MS, kept.day, kept.day - HOUR_MS]) {
      await history.addUsage(batch([counts(1, { lastUsedAt: hour })], { hour }));
    }
    while (await history.deleteOldUsage(HOUR + 30_000));
    const all = { since: 0, until: HOUR };
    expect(await startsOf(history, { by: "hour", ...all })).toEqual([kept.hour]);
    expect(await startsOf(history, { by: "day", ...all })).toEqual([kept.day, DAY - 35 * DAY_MS]);
    expect(await history.lastUsed([1])).toEqual(new Map([[1, kept.hour]]));
  });

  test("deleteOldUsage: a call deletes some of the rows, and two processes together delete all of them", async (opened) => {
    const { usageHistory: history, another } = opened;
    const keys = Array.from({ length: 6_000 }, (_, i) => counts(i + 1, { byOperation: [] }));
    const old = { hour: HOUR - 36 * DAY_MS };
    for (let from = 0; from < keys.length; from += 500) {
      await history.addUsage(batch(keys.slice(from, from + 500), old));
    }
    expect(await history.deleteOldUsage(HOUR)).toBe(true);
    expect(await history.usageByKey({ by: "hour", since: 0, until: HOUR })).toHaveLength(5_500);
    const { usageHistory: other } = await another();
    while ((await Promise.all([history, other].map((store) => store.deleteOldUsage(HOUR)))).includes(true));
    expect(await history.usageByKey({ by: "hour", since: 0, until: HOUR })).toEqual([]);
    expect(await history.usageByKey({ by: "day", since: 0, until: HOUR })).toHaveLength(6_000);
  });
}
