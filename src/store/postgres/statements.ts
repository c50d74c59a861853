import type { SQL } from "bun";
import type { Dialect, SqlDatabase, Statements } from "../statements.ts";
import { nextIdLock } from "./connection.ts";
import type { Pools } from "./pool.ts";

export function postgresDatabase(pools: Pools): SqlDatabase {
  return {
    dialect: POSTGRES_DIALECT,
    read: (statements) => pools.reads.query((sql) => runAll(sql, statements)),
    write: (statements) => pools.writes.transaction((tx) => runAll(tx, statements)),
  };
}

export async function runAll<T>(sql: SQL, statements: Statements<T>): Promise<T> {
  const steps = statements();
  let step = steps.next();
  while (step.done !== true) {
    let n = 0;
    const numbered = step.value.sql.replaceAll("?", () => `$${++n}`);
    step = steps.next(await sql.unsafe(numbered, [...step.value.values]));
  }
  return step.value;
}

/** PostgreSQL finds the best index by itself. */
export const POSTGRES_DIALECT: Dialect = {
  parameter: (n) => `$${n}`,
  indexedBy: () => "",
  list: (numbers) => numbers.join(","),
  isOneOf: (column, parameter) => `${column} = ANY (string_to_array(${parameter}, ',')::int8[])`,
  withoutCase: (column) => `lower(${column} COLLATE "C")`,
  bytewise: (column) => `${column} COLLATE "C"`,
  like: (column, parameter) => `${column} COLLATE "C" ILIKE ${parameter}`,
  matches: (column, parameter) => `${column} COLLATE "C" ~ ${parameter}`,
  pattern(characters, isPart) {
    const classes = characters.map(regexOf).join("");
    return isPart ? classes : `^${classes}$`;
  },
  labels: "json_array_elements_text(labels::json) AS label (value)",
  // With IN, a plan may run the SELECT again for each row, and find other rows.
  isSelected: (column, select) => `${column} = ANY (ARRAY(${select}))`,
  insert: (table, columns) => `WITH ${nextIdLock(table)} INSERT INTO ${table} (${columns.join(", ")})
    SELECT ${columns.map(() => "?").join(", ")} FROM next_id_lock RETURNING id`,
};

/** Every ASCII character that is no letter and no digit can be escaped. */
function regexOf(cases: readonly string[]): string {
  const text = cases.join("");
  if (cases.length > 1) return `[${text}]`;
  return /[!-/:-@[-`{-~]/.test(text) ? `\\${text}` : text;
}
