import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { NEVER, newQuota, type Subject, type Quota } from "../../src/domain/rate-limit.ts";
import type { QuotaStore } from "../../src/domain/ports/rate-limiter.ts";
import { openQuotaStore, QUOTA_MIGRATIONS } from "../../src/store/sqlite/quota-store.ts";
import { inspectDatabase } from "../../src/store/sqlite/snapshot.ts";
import { address, key, textOf } from "../subjects.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { until } from "../timing.ts";

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

test("the log of a server starts anew at 16 MB in a thread, while nothing is saved, and nothing is lost", async () => {
  using directory = disposableDirectory();
  const path = directory.path("limits.db");
  const failures: unknown[] = [];
  const store = openQuotaStore(path, { onRescue() {}, onFailure: (error) => void failures.push(error) });
  const rows = (bannedAt: number) =>
    Array.from(
      { length: 20_000 },
      (_, id) =>
        [
          { kind: "key", id },
          { ...newQuota(), bannedAt },
        ] as const,
    );
  using other = new Database(path);
  /** The pages that the log has since it started anew. */
  const logPages = () => Number(Object(other.query("PRAGMA wal_checkpoint(NOOP)").get()).log);
  for (let saves = 0; statSync(`${path}-wal`).size < 16 * 1024 * 1024; saves++) store.save(rows(AT + saves));
  // SQLite itself copies 1,000 pages.
  expect(logPages()).toBeGreaterThan(4_000);
  await until(() => store.isPaused === true, 10_000);
  await until(() => !store.isPaused, 10_000);
  expect(logPages()).toBe(1);
  store.save(rows(AT));
  store.close();
  expect(failures).toEqual([]);
  const next = openQuotaStore(path);
  expect([...next.load()]).toHaveLength(20_000);
  next.close();
}, 60_000);

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

test("a file that is damaged is named in the error, with a remedy, when it is opened or read; a link without", () => {
  using directory = disposableDirectory();
  const path = directory.path("limits.db");
  const remedy = "counts start anew when that file is moved away";
  writeFileSync(path, "Dear diary, ".repeat(1_000));
  expect(() => openQuotaStore(path)).toThrow(
    new Error(`cannot open the database ${path}: file is not a database; ${remedy}`),
  );
  symlinkSync(path, directory.path("link.db"));
  expect(() => openQuotaStore(directory.path("link.db"))).toThrow(
    /^cannot open the database .*link\.db: it is a symbolic link; only its directory may be one$/,
  );
  rmSync(path);
  const quotaStore = openQuotaStore(path);
  quotaStore.save(Array.from({ length: 1_000 }, (_, id) => [key(id), busy] as const));
  quotaStore.close();
  const pages = readFileSync(path);
  writeFileSync(path, pages.fill(0xff, 4 * 4_096));
  const damaged = openQuotaStore(path);
  const problem = new Error(`cannot read the counts in ${path}: database disk image is malformed; ${remedy}`);
  expect(() => [...damaged.load()]).toThrow(problem);
  expect(() => damaged.find(key(999))).toThrow(problem);
  damaged.close();
});

test("a file that all releases can read has version 1, and one whose columns were altered is not opened", () => {
  using directory = disposableDirectory();
  const path = directory.path("limits.db");
  openQuotaStore(path).close();
  expect(inspectDatabase(path, QUOTA_MIGRATIONS)).toMatchObject({ schemaVersion: 1, problems: [] });
  const other = new Database(path);
  other.run("ALTER TABLE standings RENAME COLUMN banned_at TO banned");
  other.close(true);
  expect(() => openQuotaStore(path)).toThrow("no such column: banned_at; counts start anew");
  expect(existsSync(`${path}-wal`)).toBe(false);
});
