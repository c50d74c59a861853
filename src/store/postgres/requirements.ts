import { SQL } from "bun";
import { messageOf } from "../../runtime/message-of.ts";
import { connect } from "./connection.ts";
import { WRITE_TO_LOG } from "./dialect.ts";
import { tableExists } from "./migrate.ts";
import { readReplication } from "./replication.ts";

/**
 * What the statements of this program use beyond plain SQL. `petstore doctor` tries each in a transaction that it rolls
 * back, so that an operator of a compatible engine learns whether it can serve. What servers work without, with a loss,
 * is a comfort.
 */
interface Requirement {
  readonly name: string;
  /** What does not work without it. */
  readonly cost: string;
  readonly isComfort?: true;
  /** Whether only a migration uses it, so that it is not tried once there are tables. */
  readonly isForTables?: true;
  /** The statements. A table `{table}` has the columns `name` and `value`. */
  readonly tries: readonly string[] | ((sql: SQL) => Promise<unknown>);
  /** The state of the error that shows that the statement is known. */
  readonly expectedState?: string;
}

export const REQUIREMENTS: readonly Requirement[] = [
  {
    name: "advisory locks",
    cost: "pets and orders cannot be created, POST cannot be repeated safely, and nothing migrates",
    tries: [
      "SELECT pg_advisory_xact_lock(0, '{table}'::regclass::oid::int)",
      "SELECT pg_try_advisory_xact_lock(0), pg_try_advisory_lock(0, 0), pg_try_advisory_lock_shared(0, 0)",
    ],
  },
  {
    name: "row locks with NOWAIT",
    cost: "orders cannot be placed or changed",
    tries: ["SELECT FROM {table} WHERE false FOR UPDATE NOWAIT"],
  },
  {
    name: "row locks with SKIP LOCKED",
    cost: "requests cannot be counted, and old data is not deleted",
    tries: [
      "SELECT FROM {table} WHERE false FOR UPDATE",
      "SELECT FROM {table} WHERE false FOR UPDATE SKIP LOCKED",
    ],
  },
  {
    name: "common table expressions that write, or are materialized",
    cost: "nothing can be created",
    tries: [
      "WITH written AS (UPDATE {table} SET value = '' WHERE false RETURNING name) SELECT name FROM written",
      "WITH locked AS MATERIALIZED (SELECT 1) SELECT FROM locked",
    ],
  },
  {
    name: "INSERT … ON CONFLICT",
    cost: "requests cannot be counted",
    tries: [
      "INSERT INTO {table} AS stored (name, value) SELECT '', '' WHERE false ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE stored.value <> excluded.value",
    ],
  },
  {
    name: "arrays and JSON as tables",
    cost: "batches of requests cannot be read or written",
    tries: [
      "SELECT * FROM unnest(string_to_array('1', ',')::int8[], ARRAY['a']) WITH ORDINALITY AS given (id, name, place)",
      "SELECT value ->> 0 FROM json_array_elements('[[1]]'::json) WITH ORDINALITY AS elements (value, place)",
      "SELECT string_agg(array_to_string(ARRAY[1], ','), ';'), '{}'::jsonb, starts_with('a', 'a')",
      "SELECT FROM (SELECT 1 AS id) AS one, LATERAL (SELECT one.id) AS other",
    ],
  },
  {
    name: "the order of bytes",
    cost: "lists cannot be searched or paged",
    tries: [`SELECT lower('A' COLLATE "C")`],
  },
  {
    name: "times within a transaction",
    cost: "windows of rate limits cannot be timed",
    tries: ["SELECT extract(epoch FROM clock_timestamp()), extract(epoch FROM statement_timestamp())"],
  },
  {
    name: "settings of a session",
    cost: "decisions about rate limits wait for the disk, or a lost server blocks the others",
    tries: [
      "synchronous_commit = off",
      "synchronous_commit = local",
      "idle_in_transaction_session_timeout = 10000",
      "statement_timeout = 10000",
      "lock_timeout = 10000",
      "enable_seqscan = off",
      "jit = off",
      "plan_cache_mode = force_generic_plan",
    ].map((setting) => `SET LOCAL ${setting}`),
  },
  {
    name: "messages in the log of writes",
    cost: "operators can change nothing, and no ban outlasts a crash",
    tries: [WRITE_TO_LOG],
  },
  {
    name: "timelines",
    cost: "changes cannot be followed, and no failover is noticed",
    tries: ["SELECT pg_is_in_recovery(), pg_walfile_name(pg_current_wal_lsn()), pg_postmaster_start_time()"],
  },
  {
    name: "snapshots that a cursor reads",
    cost: "no backup can be made",
    tries: [
      "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
      "DECLARE c NO SCROLL CURSOR FOR SELECT 1",
    ],
  },
  {
    name: "the view of sessions",
    cost: "nothing migrates, and a restore does not notice that servers run",
    tries: [
      "SELECT pg_stat_clear_snapshot()",
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = ''",
    ],
  },
  {
    name: "the views of replication",
    cost: "writes that wait for a standby that is away time out, and nothing says why",
    isComfort: true,
    tries: readReplication,
  },
  {
    name: "unlogged tables and identity columns",
    cost: "the tables cannot be made",
    isForTables: true,
    tries: ["CREATE UNLOGGED TABLE trial_unlogged (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)"],
  },
  {
    name: "indexes that are made concurrently",
    cost: "nothing migrates while servers run",
    isForTables: true,
    tries: [
      "SELECT relname FROM pg_class, pg_attribute WHERE false",
      "CREATE INDEX CONCURRENTLY trial_value ON {table} (value)",
    ],
    // It is no part of a transaction.
    expectedState: "25001",
  },
];

export interface MissingRequirement extends Pick<Requirement, "name" | "cost" | "isComfort"> {
  readonly cause: string;
}

/** Tries each requirement on a server that accepts writes, and changes nothing. */
export async function findMissingRequirements(url: string, schema: string): Promise<MissingRequirement[]> {
  await using sql = connect(url, { schema });
  const trial = (await tableExists(sql, `${schema}.server_settings`))
    ? { table: "server_settings", setUp: [] }
    : { table: "petstore_trial", setUp: newTable(schema) };
  const cannotMakeTables = (await errorOf(sql, trial.setUp)) !== undefined;
  const missing: MissingRequirement[] = [];
  for (const { name, cost, isComfort, isForTables, tries, expectedState } of REQUIREMENTS) {
    const usesTable = isForTables || (Array.isArray(tries) && tries.some((text) => text.includes("{table}")));
    // That the tables cannot be made is a finding of its own, and if they are there, they were made.
    if ((usesTable && cannotMakeTables) || (isForTables && trial.setUp.length === 0)) continue;
    const statements = Array.isArray(tries)
      ? tries.map((text) => text.replace("{table}", trial.table))
      : tries;
    const error = await errorOf(sql, usesTable ? trial.setUp : [], statements);
    if (error === undefined || stateOf(error) === (expectedState ?? "")) continue;
    missing.push({ name, cost, ...(isComfort && { isComfort }), cause: messageOf(error) });
  }
  return missing;
}

const newTable = (schema: string): readonly string[] => [
  `CREATE SCHEMA IF NOT EXISTS ${schema}`,
  "CREATE TABLE petstore_trial (name text PRIMARY KEY, value text)",
];

/** The error of the statements in a transaction that is rolled back. */
async function errorOf(
  sql: SQL,
  setUp: readonly string[],
  tries: Requirement["tries"] = [],
): Promise<unknown> {
  try {
    await sql.unsafe("BEGIN");
    for (const statement of setUp) await sql.unsafe(statement);
    if (typeof tries === "function") await tries(sql);
    else for (const statement of tries) await sql.unsafe(statement);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    await sql.unsafe("ROLLBACK");
  }
}

const stateOf = (error: unknown) => (error instanceof SQL.PostgresError ? error.errno : undefined);
