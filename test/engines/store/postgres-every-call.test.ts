import { SQL } from "bun";
import { afterAll, expect, test } from "bun:test";
import { fillAllStatements, POSTGRES_NUMBERS } from "../../../bench/skewed-rows.ts";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { callAll, growingRows } from "../../conformance/every-call.ts";
import { PortCalls, STORE_PORTS } from "../../conformance/port-calls.ts";
import { until } from "../../timing.ts";
import { databaseAt, type TestDatabase } from "./postgres-database.ts";

/*
 * What every statement of the stores reads, and what their writes wait for. PostgreSQL itself explains each statement
 * that the stores send, in its log.
 */

const NOW = Date.parse("2026-11-15T12:00:00Z");
const AUTO_EXPLAIN = {
  session_preload_libraries: "auto_explain",
  "auto_explain.log_min_duration": "0",
  "auto_explain.log_analyze": "on",
  "auto_explain.log_buffers": "on",
  "auto_explain.log_timing": "off",
  "auto_explain.log_format": "json",
  autovacuum: "off",
  log_line_prefix: "%d|%a|",
};
const log: string[] = [];
const server = await startPostgres({ settings: AUTO_EXPLAIN, onLine: (line) => void log.push(line) });
afterAll(() => server.discard());
const administration = new SQL(server.url, { max: 1 });
afterAll(() => administration.close());

async function newDatabase(name: string): Promise<TestDatabase> {
  await administration.unsafe(`CREATE DATABASE ${name}`);
  const database = databaseAt(server.url.replace(/\/postgres$/, `/${name}`));
  await (await database.open()).close();
  return database;
}

async function fill({ sql }: TestDatabase, times: number): Promise<void> {
  await sql`ALTER TABLE orders DROP CONSTRAINT orders_pet_id_fkey`;
  for (const statement of fillAllStatements(growingRows(times), POSTGRES_NUMBERS, NOW))
    await sql.unsafe(statement);
  await sql`VACUUM ANALYZE`;
}

/** The blocks that each statement of the stores read at most, in one of the databases. */
async function blocksByStatement(name: string): Promise<ReadonlyMap<string, number>> {
  // The log comes a moment later.
  const mark = `mark ${crypto.randomUUID()}`;
  await administration.unsafe(`SELECT '${mark}'`);
  await until(() => log.some((line) => line.includes(mark)), 10_000);
  const blocks = new Map<string, number>();
  const entries = log.join("\n").split(/\n(?!\t)/);
  for (const entry of entries.filter(
    (each) => each.startsWith(`${name}|petstore`) && each.includes("plan:"),
  )) {
    const { "Query Text": text, Plan: plan } = JSON.parse(entry.slice(entry.indexOf("{")));
    const statement = text.replace(/\s+/g, " ").trim();
    const read = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
    blocks.set(statement, Math.max(read, blocks.get(statement) ?? 0));
  }
  return blocks;
}

async function calledOn(name: string, times: number) {
  await using database = await newDatabase(name);
  await fill(database, times);
  const calls = new PortCalls();
  const stores = await database.open();
  await callAll(calls.recordedStores(stores));
  await stores.close();
  return { blocks: await blocksByStatement(name), missing: calls.missing(STORE_PORTS.values()) };
}

/** The statements that read more when there are more rows, and of what. */
const READS_MORE: readonly (readonly [statement: RegExp, reason: string])[] = [
  [
    / FROM api_keys WHERE revision > \$1 ORDER BY revision$/,
    "the keys that have changed since, here all of them",
  ],
  [/^SELECT state, count\(\*\) AS total FROM /, "all keys once, to count those of each state"],
  [/^SELECT count\(\*\) FILTER \(WHERE plan = /, "all keys once, to count those of each plan"],
];

test("with four times as many rows, no statement of the stores reads twice as much, but for those that say so", async () => {
  const few = await calledOn("few", 1);
  const many = await calledOn("many", 4);
  expect([few.missing, many.missing]).toEqual([[], []]);
  expect(many.blocks.size).toBeGreaterThan(80);
  const isExpected = (statement: string) => READS_MORE.some(([pattern]) => pattern.test(statement));
  const grownIn = (blocks: ReadonlyMap<string, number>) =>
    [...blocks].flatMap(([statement, read]) =>
      read > 1.5 * (few.blocks.get(statement) ?? 0) + 40 && !isExpected(statement) ? statement : [],
    );
  let grown = grownIn(many.blocks);
  if (grown.length > 0) {
    // An insert into a full page of an index may tidy it, which reads its rows. What grows, grows again.
    const again = await calledOn("many_again", 4);
    grown = grownIn(new Map(grown.map((statement) => [statement, again.blocks.get(statement) ?? Infinity])));
  }
  expect(
    grown.map((statement) => ({
      statement,
      few: few.blocks.get(statement),
      many: many.blocks.get(statement),
    })),
  ).toEqual([]);
  const unused = READS_MORE.filter(
    ([pattern]) => ![...many.blocks.keys()].some((each) => pattern.test(each)),
  );
  expect(unused).toEqual([]);
}, 60_000);

/* What counts requests is no store; it has a connection of its own (`PostgresKeyLimiter`). */
test("every write of the stores waits for the disk", async () => {
  await using database = await newDatabase("durable");
  const { sql } = database;
  await sql.unsafe(`CREATE TABLE commits (name text, waits text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN INSERT INTO commits VALUES (TG_TABLE_NAME, current_setting('synchronous_commit')); RETURN NULL; END$$`);
  // It runs at the end of each transaction, when what it waits for is decided.
  const tables = await sql<{ name: string }[]>`SELECT relname AS name FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'commits'`;
  for (const { name } of tables)
    await sql.unsafe(`CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON ${name}
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()`);
  const stores = await database.open();
  await callAll(stores);
  await stores.close();
  const commits = await sql<{ name: string; waits: string }[]>`SELECT DISTINCT name, waits FROM commits`;
  expect(commits.length).toBeGreaterThan(20);
  const unwaited = commits.flatMap(({ name, waits }) => (waits === "off" ? name : []));
  expect(unwaited.toSorted()).toEqual([]);
}, 60_000);
