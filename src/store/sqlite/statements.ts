import type { Dialect, SqlDatabase } from "../statements.ts";
import type { Connection } from "./connection.ts";

export function sqliteDatabase(connection: Connection): SqlDatabase {
  return {
    dialect: SQLITE_DIALECT,
    read: (statements) => connection.runAll(statements),
    write: (statements) => connection.transactionWhenUnlocked(() => connection.runAll(statements)),
  };
}

/** SQLite has no statistics, so that the index is given. */
export const SQLITE_DIALECT: Dialect = {
  parameter: (n) => `?${n}`,
  indexedBy: (index) => ` INDEXED BY ${index}`,
  list: (numbers) => JSON.stringify(numbers),
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  withoutCase: (column) => `${column} COLLATE NOCASE`,
  bytewise: (column) => column,
  like: (column, parameter) => `${column} LIKE ${parameter} ESCAPE '\\'`,
  matches: (column, parameter) => `${column} GLOB ${parameter}`,
  pattern(characters, isPart) {
    const classes = characters.map(globOf).join("");
    return isPart ? `*${classes}*` : classes;
  },
  labels: "json_each(labels)",
  isSelected: (column, select) => `${column} IN (${select})`,
  insert: (table, columns) =>
    `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")}) RETURNING id`,
};

function globOf(cases: readonly string[]): string {
  const text = cases.join("");
  return cases.length > 1 || /[*?[]/.test(text) ? `[${text}]` : text;
}
