import { expect, spyOn, test } from "bun:test";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { SqlOperatorStore } from "../../src/store/operators.ts";
import { SqlQuestionStore } from "../../src/store/questions.ts";
import { SqlServerReportStore } from "../../src/store/server-reports.ts";
import type { SharedTables, TableReader } from "../../src/store/sql/table-store.ts";
import { rowsOf } from "../../src/store/sql/steps.ts";
import { PETS } from "../../src/store/sql/tables.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { SqliteClientStore } from "../../src/store/sqlite/client-store.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import { SqlWebhookStore } from "../../src/store/webhooks.ts";
import { temporaryDatabase } from "./sqlite-database.ts";

/** The numbers from 1 as the table `n` of a statement that follows. */
const numbers = (count: number) =>
  `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;

test("an import leaves the lock for a moment and copies the log early while others write, and for 5 s afterwards", async () => {
  using db = temporaryDatabase();
  await using shared: SharedTables & AsyncDisposable = await sqliteTables(db.path).share();
  let now = 7_000;
  using _ = spyOn(scheduler, "now").mockImplementation(() => now);
  using exec = spyOn(Connection.prototype, "exec");
  using sleep = spyOn(scheduler, "sleep");
  const write = async () => {
    exec.mockClear();
    sleep.mockClear();
    await shared.write(() => rowsOf("SELECT 1"));
    return [...exec.mock.calls, ...sleep.mock.calls].flat();
  };
  expect(await write()).toEqual(["PRAGMA wal_autocheckpoint = 8000"]);
  expect(await write()).toEqual([]);
  db.connection.run("UPDATE key_revision SET revision = revision + 1");
  expect(await write()).toEqual(["PRAGMA wal_autocheckpoint = 400", 2]);
  now += 4_999;
  expect(await write()).toEqual([2]);
  now += 1;
  expect(await write()).toEqual(["PRAGMA wal_autocheckpoint = 8000"]);
  expect(shared.rowsPerTransaction).toBe(500);
});

test("rows are read 2,000 at a time", async () => {
  using db = temporaryDatabase();
  db.connection.exec(`INSERT INTO pets (name, category_id) ${numbers(4_001)} SELECT 'Rex', 1 FROM n`);
  await using reader: TableReader & AsyncDisposable = await sqliteTables(db.path).read();
  const sizes: number[] = [];
  for await (const rows of reader.rows(PETS)) sizes.push(rows.length);
  expect(sizes).toEqual([2_000, 2_000, 1]);
});

test("what servers share is bounded: 1,000 reports, questions of 16 KiB for 30 s, 1,000 waiting entries, 500 operators", async () => {
  using db = temporaryDatabase();
  const { connection } = db;
  const database = new SqliteClientStore(connection).databaseFor();
  connection.exec(`INSERT INTO servers (id, report, reported_at) ${numbers(1_001)} SELECT i, '{}', 0 FROM n`);
  expect(await new SqlServerReportStore(database).listReports()).toHaveLength(1_000);

  const questions = new SqlQuestionStore(database);
  const ask = (id: string, length = 0) =>
    questions.ask([{ id, operation: "getSeries", query: "x".repeat(length) }]);
  for (const id of ["old", "ahead", "new"]) await ask(id);
  for (const [id, ms] of [
    ["old", -31_000],
    ["ahead", 60_000],
    ["new", -15_000],
  ] as const)
    connection.run("UPDATE server_questions SET asked_at = asked_at + ? WHERE id = ?", ms, id);
  await ask("long", 16_384);
  await ask("too long", 16_385);
  connection.exec(`INSERT INTO server_questions (id, operation, query, asked_at)
    SELECT printf('%0301d', 0), operation, query, asked_at FROM server_questions WHERE id = 'new'
    UNION ALL SELECT 'of a long name', printf('%0301d', 0), query, asked_at FROM server_questions WHERE id = 'new'`);
  const taken = async () => (await questions.take("a", "a", 9)).map(({ id }) => id);
  expect(await taken()).toEqual(["new", "long"]);
  const fill = (rows: number) =>
    connection.exec(`DELETE FROM server_questions; INSERT INTO server_questions (id, operation, query, asked_at)
      ${numbers(rows)} SELECT i, 'getSettings', '', unixepoch() * 1000 FROM n`);
  fill(1_000);
  expect(await taken()).toHaveLength(9);
  // No server has stored so many.
  fill(20_000);
  expect(await taken()).toEqual([]);
  expect(connection.value("SELECT count(*) FROM server_questions")).toBe(0n);

  connection.exec(
    `INSERT INTO audit (at, actor, action) ${numbers(1_001)} SELECT i, 'server', 'key.banned' FROM n`,
  );
  const waiting = await new SqlWebhookStore(database).countWaiting(0n, undefined);
  expect(waiting).toEqual({ count: 1_000, oldestAt: 1 });

  connection.exec(`INSERT INTO operators (id, name, role, created_at, revoked_at)
    ${numbers(501)} SELECT i, 'name ' || i, 'viewer', 0, 1 FROM n`);
  connection.exec(
    `INSERT INTO operator_tokens (hash, operator_id, hint, issued_at) ${numbers(501)} SELECT printf('%064d', i), i, '', 0 FROM n`,
  );
  const listed = await new SqlOperatorStore(database).listOperators();
  expect([listed.length, listed[0]?.id]).toEqual([500, 2]);
});
