import { expect } from "bun:test";
import type { UsageHistoryStore } from "../../src/domain/ports.ts";
import type { KeyCounts, UsageBatch, UsagePeriod, UsageRow } from "../../src/domain/usage-history.ts";
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

const row = (change: Partial<UsageRow>): UsageRow => ({
  keyId: 1,
  start: HOUR,
  operation: "none",
  admitted: 0,
  limited: 0,
  banned: 0,
  errors: 0,
  ...change,
});

const byHour = { by: "hour", since: HOUR, until: HOUR } as const;
const byDay = { by: "day", since: HOUR, until: HOUR } as const;

/** Of the intervals in which key 1 was used. */
async function startsOf(history: UsageHistoryStore, period: UsagePeriod): Promise<number[]> {
  const rows = await history.readUsage({ keyId: 1, ...period });
  return [...new Set(rows.map(({ start }) => start))];
}

/** What every UsageHistoryStore does, on whatever database. */
export function usageHistoryConformance(test: TestCase): void {
  test("addUsage: counts are read by operation, those of no operation last, for the hour and for its day", async (opened) => {
    const { usageHistory: history } = opened;
    expect([await history.usageByKey(byDay), await history.lastUsed([1])]).toEqual([[], new Map()]);
    expect(await history.deleteOldUsage(HOUR)).toBe(false);
    await history.addUsage(batch([counts(1)]));
    const getPet = { operation: "getPet", admitted: 5, errors: 5 } as const;
    const listPets = { operation: "listPets", admitted: 4, errors: 1 } as const;
    const more = { admitted: 9, limited: 0, errors: 6, byOperation: [getPet, listPets] };
    await history.addUsage(batch([counts(1, more)]));
    const rows = (start: number) => [
      row({ start, operation: "listPets", admitted: 10, errors: 1 }),
      row({ start, operation: "createPet", admitted: 3, errors: 1 }),
      row({ start, operation: "getPet", admitted: 5, errors: 5 }),
      row({ start, operation: "none", admitted: 1, limited: 3, banned: 2, errors: 1 }),
    ];
    expect(await history.readUsage({ keyId: 1, ...byHour })).toStrictEqual(rows(HOUR));
    expect(await history.readUsage({ keyId: 1, ...byDay })).toStrictEqual(rows(DAY));
    expect(await history.readUsage({ keyId: 2, ...byHour })).toEqual([]);
  });

  test("addUsage: a batch that was added before is not added again", async (opened) => {
    const { usageHistory: history, another } = opened;
    const first = batch([counts(1)]);
    await history.addUsage(first);
    await history.addUsage(first);
    await (await another()).usageHistory.addUsage(first);
    expect(await history.usageByKey(byHour)).toMatchObject([{ keyId: 1, admitted: 10 }]);
    const second = batch([counts(1)]);
    await Promise.all([history.addUsage(second), (await another()).usageHistory.addUsage(second)]);
    expect(await history.usageByKey(byHour)).toMatchObject([{ keyId: 1, admitted: 20 }]);
  });

  test("addUsage: processes that add to the same keys at the same time add up", async (opened) => {
    const { usageHistory: history, another } = opened;
    const stores = [history, (await another()).usageHistory, (await another()).usageHistory];
    const keys = Array.from({ length: 50 }, (_, i) => counts(i + 1));
    const shuffled = () => keys.toSorted(() => Math.random() - 0.5);
    for (let round = 1; round <= 5; round++) {
      const add = (store: UsageHistoryStore, i: number) =>
        store.addUsage(batch(shuffled(), { writer: `server ${i}`, sequence: round }));
      await Promise.all(stores.map(add));
    }
    const totals = await history.usageByKey(byDay);
    expect(totals.map(({ keyId }) => keyId)).toEqual(keys.map(({ keyId }) => keyId));
    for (const total of totals) {
      expect(total).toMatchObject({ admitted: 150, limited: 45, banned: 15, errors: 30 });
    }
  });

  test("addUsage: counts beyond 32 bits are exact", async ({ usageHistory: history }) => {
    const admitted = 5_000_000_001;
    const byOperation = [{ operation: "listPets", admitted, errors: 1 } as const];
    const large = counts(1, { admitted, limited: 0, banned: 0, errors: 1, byOperation });
    await history.addUsage(batch([large]));
    await history.addUsage(batch([large]));
    const expected = { admitted: 10_000_000_002, errors: 2 };
    expect(await history.readUsage({ keyId: 1, ...byDay })).toMatchObject([expected]);
    expect(await history.usageByKey(byDay)).toMatchObject([expected]);
  });

  test("readUsage: the intervals that contain the ends of the period belong to it", async (opened) => {
    const { usageHistory: history } = opened;
    const hours = [-25, -24, -1, 0, 1].map((offset) => HOUR + offset * HOUR_MS);
    for (const hour of hours) await history.addUsage(batch([counts(1)], { hour }));
    const starts = (by: "hour" | "day", since: number, until: number) =>
      startsOf(history, { by, since, until });
    expect(await starts("hour", HOUR - 1, HOUR + HOUR_MS - 1)).toEqual([HOUR - HOUR_MS, HOUR]);
    expect(await starts("hour", HOUR - 24 * HOUR_MS + 1, HOUR - 1)).toEqual([hours[1], hours[2]] as never);
    expect(await starts("day", HOUR, HOUR)).toEqual([DAY]);
    expect(await starts("day", DAY - 1, HOUR)).toEqual([DAY - DAY_MS, DAY]);
    // Without bounds, only what is stored is looked at.
    expect(await starts("hour", 0, 253_402_300_799_999)).toEqual(hours);
  });

  test("usageByKey: sums of the period, most requests first, rejected ones included", async (opened) => {
    const { usageHistory: history, keys } = opened;
    await keys.createKey({ name: "app", plan: "pro", createdAt: HOUR }, storedSecret(0), BY);
    const unknown = { name: null, plan: null, lastUsedAt: HOUR + 5_000 };
    const small = { admitted: 1, limited: 0, banned: 0, errors: 0, byOperation: [] };
    await history.addUsage(batch([counts(1, small), counts(2), counts(3, { ...small, limited: 99 })]));
    await history.addUsage(batch([counts(2), counts(4, small)], { hour: HOUR - HOUR_MS }));
    await history.addUsage(batch([counts(5)], { hour: HOUR - DAY_MS }));
    expect(await history.usageByKey({ ...byHour, since: HOUR - HOUR_MS })).toStrictEqual([
      { keyId: 3, ...unknown, admitted: 1, limited: 99, banned: 0, errors: 0 },
      { keyId: 2, ...unknown, admitted: 20, limited: 6, banned: 2, errors: 4 },
      { keyId: 1, ...unknown, name: "app", plan: "pro", admitted: 1, limited: 0, banned: 0, errors: 0 },
      { keyId: 4, ...unknown, admitted: 1, limited: 0, banned: 0, errors: 0 },
    ]);
    const ids = async (limit: number) => {
      const totals = await history.usageByKey({ ...byDay, since: HOUR - DAY_MS, limit });
      return totals.map(({ keyId }) => keyId);
    };
    expect(await ids(2)).toEqual([3, 2]);
    expect(await ids(10)).toEqual([3, 2, 5, 1, 4]);
  });

  test("usageByKey: whatever the period, the sum of what readUsage returns", async (opened) => {
    const { usageHistory: history } = opened;
    const random = (below: number) => Math.floor(Math.random() * below);
    for (let i = 0; i < 60; i++) {
      const hour = HOUR - (i % 2 ? random(60) : 24 * random(30)) * HOUR_MS;
      await history.addUsage(batch([counts(1 + random(2), { limited: random(100) })], { hour }));
    }
    for (let i = 0; i < 40; i++) {
      const by = i % 2 ? "hour" : "day";
      const length = i % 2 ? HOUR_MS : DAY_MS;
      const since = HOUR - random(62) * length;
      const period = { by, since, until: since + random(30) * length } as const;
      const rows = await Promise.all([1, 2].map((keyId) => history.readUsage({ keyId, ...period })));
      const sums = rows.map((ofKey) => [
        ofKey.reduce((sum, { admitted }) => sum + admitted, 0),
        ofKey.reduce((sum, { limited }) => sum + limited, 0),
      ]);
      const totals = await history.usageByKey(period);
      const found = [1, 2].map((id) => totals.find(({ keyId }) => keyId === id));
      expect(found.map((total) => [total?.admitted ?? 0, total?.limited ?? 0])).toEqual(sums);
    }
  });

  test("lastUsed: the latest time of each key that was used", async ({ usageHistory: history }) => {
    await history.addUsage(batch([counts(1), counts(2, { lastUsedAt: HOUR + 7 })]));
    // Counts of an earlier hour can be stored later.
    const earlier = { hour: HOUR - HOUR_MS };
    await history.addUsage(batch([counts(1, { lastUsedAt: HOUR - 1 })], earlier));
    expect(await history.lastUsed([1, 2, 3])).toEqual(
      new Map([
        [1, HOUR + 5_000],
        [2, HOUR + 7],
      ]),
    );
    expect(await history.lastUsed([2, 3])).toEqual(new Map([[2, HOUR + 7]]));
    expect(await history.lastUsed([])).toEqual(new Map());
  });

  test("countDeprecatedUse: how many keys called a deprecated operation since", async (opened) => {
    const { usageHistory: history, another } = opened;
    expect(await history.countDeprecatedUse(0)).toBe(0);
    const getPet = [{ operation: "getPet", admitted: 1, errors: 1 }] as const;
    const used = (keyId: number, lastUsedAt: number) => counts(keyId, { lastUsedAt, byOperation: getPet });
    await history.addUsage(batch([used(1, HOUR + 1), used(2, HOUR + 2), counts(3)]));
    const { usageHistory: other } = await another();
    await other.addUsage(batch([used(1, HOUR + 9), used(2, HOUR)], { writer: "other" }));
    // Later, but of another operation.
    await history.addUsage(batch([counts(1, { lastUsedAt: HOUR + 50 })]));
    expect(await history.countDeprecatedUse(HOUR)).toBe(2);
    expect(await history.countDeprecatedUse(HOUR + 2)).toBe(2);
    expect(await history.countDeprecatedUse(HOUR + 3)).toBe(1);
    expect(await history.countDeprecatedUse(HOUR + 10)).toBe(0);
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
    const { usageHistory: other } = await another();
    while ((await Promise.all([history, other].map((store) => store.deleteOldUsage(HOUR)))).includes(true));
    expect(await history.usageByKey({ by: "hour", since: 0, until: HOUR })).toEqual([]);
    expect(await history.usageByKey({ by: "day", since: 0, until: HOUR })).toHaveLength(6_000);
  });
}
