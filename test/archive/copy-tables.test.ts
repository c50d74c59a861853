import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { copyTables } from "../../src/archive/copy-tables.ts";
import type { WorkProgress } from "../../src/archive/progress.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import type { TableStore } from "../../src/store/sql/table-store.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { sqliteIn } from "../../trials/harness/contents.ts";
import { fillData, NOW } from "./sample-data.ts";

const entry = { actor: { kind: "command line" }, at: NOW, action: "data.copied" } as const;

test("a copy reports all rows of each step; a repetition finds the same, or what has changed since", async () => {
  const [source, target] = [temporaryDirectory("source"), temporaryDirectory("target")];
  await fillData(source, 1_100);
  const to = sqliteIn(target);
  const copy = async () => {
    const existedBefore: boolean[] = [];
    const reports: WorkProgress[] = [];
    const { outcome, contents } = await copyTables({
      from: sqliteIn(source),
      to,
      entry,
      beforePublish: async () => void existedBefore.push(await to.exists()),
      onProgress: (report) => reports.push(report),
    });
    for (const { checksum } of Object.values(contents.tables)) expect(checksum).toMatch(/^[\da-f]{16}$/);
    const total = Object.values(contents.tables).reduce((sum, { rows }) => sum + rows, 0);
    const isLast = ({ step }: WorkProgress, index: number) => step !== reports[index + 1]?.step;
    const ends = reports.filter(isLast).map(({ step, done = 0, share = 0 }) => {
      return `${step} ${done - total} of ${Math.round(done / share) - total}`;
    });
    return { outcome, ends, pets: contents.tables["pets"]?.rows, existedBefore };
  };
  expect(await copy()).toEqual({
    outcome: "copied",
    ends: ["copying 0 of 0", "comparing 0 of 0"],
    pets: 1_099,
    existedBefore: [false],
  });
  const changes = [
    ["same", "SELECT 1"],
    // Only the entry of the copy itself may be new.
    ["other", "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'audit'"],
    ["same", "UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'audit'"],
    ["other", "UPDATE pets SET name = 'another' WHERE id = 7"],
  ] as const;
  for (const [outcome, change] of changes) {
    using database = new Database(join(target, "production.db"));
    database.run(change);
    expect(await copy()).toMatchObject({
      outcome,
      ends: ["reading 0 of 0", "comparing 0 of 1"],
      existedBefore: [],
    });
  }
});

test("a copy that lacks a row of its source is not published", async () => {
  const [source, target] = [temporaryDirectory("source"), temporaryDirectory("target")];
  await fillData(source);
  const sqlite = sqliteIn(target);
  const to: TableStore = {
    ...sqlite,
    async create() {
      const tables = await sqlite.create();
      return {
        ...tables,
        insert: (table, rows) => tables.insert(table, table.name === "pets" ? rows.slice(0, -1) : rows),
      };
    },
  };
  await expect(copyTables({ from: sqliteIn(source), to })).rejects.toThrow(
    "the copy differs from its source in pets",
  );
  expect(await to.exists()).toBeFalse();
});

test("a copy without what another command has written meanwhile is not published", async () => {
  const source = temporaryDirectory("source");
  await fillData(source, 10);
  const [from, to] = [sqliteIn(source), sqliteIn(temporaryDirectory("target"))];
  const write = async () => {
    const { clientStore, close } = openSqlite(join(source, "production.db"));
    await clientStore.createPet({ name: "later", categoryId: 1n }, NOW);
    await close();
  };
  await expect(copyTables({ from, to, entry, beforePublish: write })).rejects.toThrow(
    "another command has written to the source meanwhile",
  );
  expect(await to.exists()).toBeFalse();
  expect((await copyTables({ from, to })).outcome).toBe("copied");
});
