import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { NEVER, newUsage, type Subject, type Usage } from "../../src/domain/rate-limit.ts";
import type { UsageStore } from "../../src/domain/ports.ts";
import { openUsageStore } from "../../src/store/sqlite/usage-store.ts";
import { address, key, textOf } from "../subjects.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const AT = Date.UTC(2026, 10, 15, 9, 30);

const busy: Usage = {
  minute: { openedAt: AT, used: 60, firstRejectedAt: AT + 10, strikes: 3 },
  day: { openedAt: AT - 5_000, used: 1_000, firstRejectedAt: NEVER, strikes: 0 },
  bannedAt: AT + 1,
  bannedUntil: AT + 300_001,
  lastBanMs: 0,
};

const all = (usageStore: UsageStore) =>
  [...usageStore.load()].toSorted(([one], [other]) => textOf(one).localeCompare(textOf(other)));

test("saved usage is the same after a restart", () => {
  using directory = temporaryDirectory();
  const entries: [Subject, Usage][] = [
    [address("2001:db8:0:1::/64"), { ...busy, bannedAt: NEVER, bannedUntil: NEVER }],
    [key(1), busy],
    [key(2), { ...newUsage(), bannedUntil: AT + 5, lastBanMs: 2_400_000 }],
    [key(9_007_199_254_740_991), newUsage()],
  ];
  const before = openUsageStore(directory.path("limits.db"));
  before.save(entries);
  before.close();
  const usageStore = openUsageStore(directory.path("limits.db"));
  expect(all(usageStore)).toEqual(entries);
  for (const [subject, usage] of entries) expect(usageStore.find(subject)).toStrictEqual(usage);
  usageStore.close();
});

test("a save replaces the usage of its subjects; undefined deletes a subject, and one that is not stored too", () => {
  using directory = temporaryDirectory();
  const usageStore = openUsageStore(directory.path("limits.db"));
  expect(usageStore.find(key(1))).toBeUndefined();
  for (const usage of [newUsage(), busy, undefined]) {
    usageStore.save([
      [key(1), usage],
      [key(2), undefined],
      [key(3), newUsage()],
    ]);
    expect(usageStore.find(key(1))).toEqual(usage);
  }
  expect(all(usageStore)).toEqual([[key(3), newUsage()]]);
  usageStore.close();
});

test("a save that fails half-way, or while another process writes, saves nothing, and the next one works", () => {
  using directory = temporaryDirectory();
  const usageStore = openUsageStore(directory.path("limits.db"));
  function* broken(): Generator<readonly [Subject, Usage]> {
    yield [key(1), busy];
    throw new Error("half-way");
  }
  expect(() => usageStore.save(broken())).toThrow("half-way");
  using other = new Database(directory.path("limits.db"));
  other.run("BEGIN IMMEDIATE");
  expect(() => usageStore.save([[key(1), busy]])).toThrow("locked");
  other.run("COMMIT");
  expect(all(usageStore)).toEqual([]);
  usageStore.save([[key(1), busy]]);
  const command = openUsageStore(directory.path("limits.db"));
  expect(command.find(key(1))).toEqual(busy);
  command.close();
  usageStore.close();
});
