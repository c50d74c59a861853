import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { NEVER, newQuota, type Subject, type Quota } from "../../src/domain/rate-limit.ts";
import type { QuotaStore } from "../../src/domain/ports/rate-limiter.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import { address, key, textOf } from "../subjects.ts";
import { disposableDirectory } from "../disposable-directory.ts";

const AT = Date.UTC(2026, 10, 15, 9, 30);

const busy: Quota = {
  minute: { openedAt: AT, used: 60, graceBeganAt: AT + 10, strikes: 3 },
  day: { openedAt: AT - 5_000, used: 1_000, graceBeganAt: NEVER, strikes: 0 },
  bannedAt: AT + 1,
  bannedUntil: AT + 300_001,
  lastBanMs: 0,
};

const all = (quotaStore: QuotaStore) =>
  [...quotaStore.load()].toSorted(([one], [other]) => textOf(one).localeCompare(textOf(other)));

test("saved quota is the same after a restart", () => {
  using directory = disposableDirectory();
  const entries: [Subject, Quota][] = [
    [address("2001:db8:0:1::/64"), { ...busy, bannedAt: NEVER, bannedUntil: NEVER }],
    [key(1), busy],
    [key(2), { ...newQuota(), bannedUntil: AT + 5, lastBanMs: 2_400_000 }],
    [key(9_007_199_254_740_991), newQuota()],
  ];
  const before = openQuotaStore(directory.path("limits.db"));
  before.save(entries);
  before.close();
  const quotaStore = openQuotaStore(directory.path("limits.db"));
  expect(all(quotaStore)).toEqual(entries);
  for (const [subject, quota] of entries) expect(quotaStore.find(subject)).toStrictEqual(quota);
  quotaStore.close();
});

test("a save replaces the quota of its subjects; undefined deletes a subject, and one that is not stored too", () => {
  using directory = disposableDirectory();
  const quotaStore = openQuotaStore(directory.path("limits.db"));
  expect(quotaStore.find(key(1))).toBeUndefined();
  for (const quota of [newQuota(), busy, undefined]) {
    quotaStore.save([
      [key(1), quota],
      [key(2), undefined],
      [key(3), newQuota()],
    ]);
    expect(quotaStore.find(key(1))).toEqual(quota);
  }
  expect(all(quotaStore)).toEqual([[key(3), newQuota()]]);
  quotaStore.close();
});

test("a save that fails half-way, or while another process writes, saves nothing, and the next one works", () => {
  using directory = disposableDirectory();
  const quotaStore = openQuotaStore(directory.path("limits.db"));
  function* broken(): Generator<readonly [Subject, Quota]> {
    yield [key(1), busy];
    throw new Error("half-way");
  }
  expect(() => quotaStore.save(broken())).toThrow("half-way");
  using other = new Database(directory.path("limits.db"));
  other.run("BEGIN IMMEDIATE");
  expect(() => quotaStore.save([[key(1), busy]])).toThrow("locked");
  other.run("COMMIT");
  expect(all(quotaStore)).toEqual([]);
  quotaStore.save([[key(1), busy]]);
  const command = openQuotaStore(directory.path("limits.db"));
  expect(command.find(key(1))).toEqual(busy);
  command.close();
  quotaStore.close();
});
