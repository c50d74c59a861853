import type { SQL } from "bun";
import { OperatorReadQueue } from "../sql/operator-read-queue.ts";
import { runSteps, type SqlDatabase, type Statement, type Statements } from "../sql/steps.ts";
import type { ColumnType, Dialect } from "../sql/dialect.ts";
import { nextIdLock } from "./locks.ts";
import { type Pools, OPERATOR_READS } from "./pools.ts";
import { TIMELINE } from "./timeline.ts";

export function postgresDatabase(pools: Pools): SqlDatabase {
  return {
    dialect: POSTGRES_DIALECT,
    read: (statements) => pools.reads.query((sql) => runAll(sql, statements)),
    write: (statements) =>
      pools.writes.transaction(async (tx) => {
        await tx.unsafe(WRITE_TO_LOG);
        return runAll(tx, statements);
      }),
  };
}

/**
 * Reads of operators, on connections of their own. As many run at a time as there are connections, so that the time of
 * a statement is that in which it is executed.
 */
export function operatorReadsOn({ operatorReads }: Pools): SqlDatabase["read"] {
  const queue = new OperatorReadQueue({ maxRunning: OPERATOR_READS });
  const run = (statement: Statement) => operatorReads.query((sql) => execute(sql, statement));
  return (statements) => queue.run(() => runSteps(statements, run));
}

/** The database of unlogged tables: each statement is a transaction, which waits for no disk and no standby. */
export function unloggedDatabase(pools: Pools): SqlDatabase {
  const run = <T>(statements: Statements<T>) => pools.reads.query((sql) => runAll(sql, statements));
  return { dialect: POSTGRES_DIALECT, read: run, write: run };
}

/**
 * Makes a commit wait for the disk and for a synchronous standby, which it otherwise does only if its transaction has
 * written something. A change that was found to be made already may not have reached them.
 */
export const WRITE_TO_LOG = "SELECT pg_logical_emit_message(true, 'petstore', '')";

export function runAll<T>(sql: SQL, statements: Statements<T>): Promise<T> {
  return runSteps(statements, (statement) => execute(sql, statement));
}

function execute(sql: SQL, { sql: text, values }: Statement): Promise<unknown[]> {
  return sql.unsafe(withNumberedParameters(text), [...values]);
}

/** Replaces the parameters `?` by those of PostgreSQL, `$1`, `$2` and so on. */
export function withNumberedParameters(sql: string): string {
  let n = 0;
  return sql.replaceAll(/\?(\d*)/g, (_, given: string) => `$${given || ++n}`);
}

const TYPES = { integer: "int8", text: "text", json: "jsonb" } as const;

/** A table with these columns and their `place`. Its parameters are arrays, each with the values of a column. */
export function parameterColumns(columns: Readonly<Record<string, ColumnType>>): string {
  const values = Object.values(columns).map((type, i) => `$${i + 1}::${TYPES[type]}[]`);
  return `(SELECT * FROM unnest(${values.join(", ")}) WITH ORDINALITY AS given (${Object.keys(columns).join(", ")}, place))`;
}

export const POSTGRES_DIALECT: Dialect = {
  comparesRows: true,
  // One has the order of bytes, so that no other has its columns.
  petIndexes: [
    { name: "pets_by_status", columns: { status: "status" } },
    { name: "pets_by_category", columns: { category_id: "category_id" } },
    {
      name: "pets_by_category_and_status",
      columns: { category_id: "category_id", status: 'status COLLATE "C"' },
    },
  ],
  timeline: TIMELINE,
  now: "(extract(epoch FROM statement_timestamp()) * 1000)::int8",
  hasOwnClock: true,
  writeThenSelect: (write, select) => [`WITH written AS (${write}) ${select}`],
  isOneOf: (column, parameter, type = "integer") =>
    `${column} = ANY (ARRAY(SELECT json_array_elements_text(${parameter}::text::json))::${TYPES[type]}[])`,
  tableOfJson(columns, parameter = "?") {
    const values = Object.entries(columns).map(
      ([column, type], i) => `(value ->> ${i})::${TYPES[type]} AS ${column}`,
    );
    return `(SELECT place, ${values.join(", ")}
      FROM json_array_elements(${parameter}::text::json) WITH ORDINALITY AS elements (value, place)) AS json_rows`;
  },
  withoutCase: (column) => `lower(${column} COLLATE "C")`,
  bytewise: (column) => `${column} COLLATE "C"`,
  like: (column, parameter) => `${column} COLLATE "C" ILIKE ${parameter}`,
  matches: (column, parameter) => `${column} COLLATE "C" ~ ${parameter}`,
  pattern(characters, isPart) {
    const classes = characters.map(regexOf).join("");
    return isPart ? classes : `^${classes}$`;
  },
  labels: "json_array_elements_text(labels::json) AS label (value)",
  insert: (table, columns) => `WITH ${nextIdLock(table)} INSERT INTO ${table} (${columns.join(", ")})
    SELECT ${columns.map(() => "?").join(", ")} FROM next_id_lock RETURNING id`,
  // `json_build_object` would write spaces. The first member is never optional.
  jsonObject(members) {
    const parts = members.map(({ name, column, kind, isOptional }, i) => {
      const label = `${i === 0 ? "{" : ","}"${name}":`;
      const member = {
        integer: `'${label}' || ${column}`,
        text: `'${label}' || to_json(${column})`,
        choice: `'${label}"' || ${column} || '"'`,
        time: `'${label}"' || to_char(to_timestamp(${column} / 1000.0) AT TIME ZONE 'UTC', '${ISO_TIME}') || '"'`,
      }[kind];
      return isOptional ? `coalesce(${member}, '')` : member;
    });
    return `${parts.join(" || ")} || '}'`;
  },
  lockIds: (table) => `WITH ${nextIdLock(table)} SELECT FROM next_id_lock`,
  lockTable: (table) => `LOCK TABLE ${table} IN SHARE ROW EXCLUSIVE MODE`,
  lockRows: (lock) => ` FOR ${lock}`,
  indexedBy: () => "",
  explicitIds: "OVERRIDING SYSTEM VALUE",
  // With IN, a plan may run the SELECT again for each row and find other rows.
  deleteFirst: ({ table, where, order }) => `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ? FOR UPDATE SKIP LOCKED)) RETURNING 1`,
  addedOperations: `(SELECT coalesce(jsonb_object_agg(operation, counts), '{}') FROM (
    SELECT operation, jsonb_build_array(sum((counts ->> 0)::int8), sum((counts ->> 1)::int8)) AS counts FROM (
      SELECT * FROM jsonb_each(stored.operations)
      UNION ALL SELECT * FROM jsonb_each(excluded.operations)
    ) AS both_counts (operation, counts) GROUP BY operation
  ) AS sums)`,
};

const ISO_TIME = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';

/** Escapes a character unless it is a letter or a digit. PostgreSQL allows that for every ASCII character. */
function regexOf(cases: readonly string[]): string {
  const text = cases.join("");
  if (cases.length > 1) return `[${text}]`;
  return /[!-/:-@[-`{-~]/.test(text) ? `\\${text}` : text;
}
