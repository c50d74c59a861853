/*
 * Both databases share one set of statements. A transaction is a generator that yields its statements and receives
 * their rows, so that it runs at once on SQLite, and with promises on PostgreSQL.
 */

import type { NewAuditEntry } from "../../domain/audit.ts";
import { type Page, pageOf } from "../../domain/pages.ts";
import type { Awaitable } from "../../runtime/awaitable.ts";
import type { Dialect } from "./dialect.ts";
import type { SqlValue } from "./values.ts";

export interface Statement {
  /** The text. Its parameters are `?`, or all of them `?1`, `?2` and so on. An empty statement does nothing. */
  readonly sql: string;
  readonly values: readonly (SqlValue | Uint8Array | null)[];
  /** Whether the text depends on the query, so that it is not kept as a prepared statement. */
  readonly isVaried?: boolean;
  /** The entry that the statement adds to the audit trail. It returns the `id` of the entry. */
  readonly audited?: NewAuditEntry;
}

/** Statements that run one after the other. Each `yield` returns the rows of its statement. */
export type Steps<T> = Generator<Statement, T, unknown[]>;
export type Statements<T> = () => Steps<T>;

/** Runs statements one after the other on a database that returns promises. */
export async function runSteps<T>(
  statements: Statements<T>,
  execute: (statement: Statement) => Promise<unknown[]>,
): Promise<T> {
  const steps = statements();
  let step = steps.next();
  while (step.done !== true) step = steps.next(step.value.sql === "" ? [] : await execute(step.value));
  return step.value;
}

export function* rowsOf<Row>(sql: string, ...values: Statement["values"]): Steps<Row[]> {
  return yield* rowsOfQuery<Row>({ sql, values });
}

export function* rowsOfQuery<Row>(statement: Statement): Steps<Row[]> {
  // The rows have the columns that the statement selects.
  return (yield statement) as Row[];
}

/** Returns a row that a statement must have returned. */
export function requireRow<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error("the database returned fewer rows than it was asked for");
  return row;
}

/** Runs a statement whose integers are all below 2^53, and returns them as numbers. */
export function* numberRowsOf<Row>(sql: string, ...values: Statement["values"]): Steps<Row[]> {
  const rows = yield* rowsOf<Record<string, unknown>>(sql, ...values);
  for (const row of rows) {
    for (const name of Object.keys(row)) {
      const value = row[name];
      if (typeof value === "bigint") row[name] = Number(value);
    }
  }
  // The rows have the columns that the statement selects.
  return rows as Row[];
}

/** Runs a statement whose integers are all below 2^53, and returns objects, which omit the columns that are null. */
export function* objectsOf<T>(sql: string, ...values: Statement["values"]): Steps<T[]> {
  return (yield* rowsOf<object>(sql, ...values)).map(objectOf<T>);
}

/** Returns the row without its nulls. */
function objectOf<T>(row: object): T {
  const object: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(row)) {
    if (value !== null) object[name] = typeof value === "bigint" ? Number(value) : value;
  }
  // The object has the columns that the statement selects.
  return object as T;
}

/** Stands for all rows of a table. OFFSET requires a LIMIT in SQLite, and PostgreSQL allows no negative one. */
const ALL = 1_000_000;

interface Newest {
  /** The primary key. */
  readonly key: string;
  readonly from: string;
  /** The rows of one owner. So nobody's rows displace those of somebody else. */
  readonly of: `${string}_id = ?${string}`;
  /** The order, which no two rows share. */
  readonly newestFirst: string;
}

/** A condition for all rows of an owner but the newest ones. */
export function isAfterNewest(count: number, { key, from, of, newestFirst }: Newest): string {
  return `${key} IN (SELECT ${key} FROM ${from} WHERE ${of} ORDER BY ${newestFirst} LIMIT ${ALL} OFFSET ${count})`;
}

/**
 * Reads a page. The statement selects one row more than the limit if it can: that row shows that another page follows.
 */
export function* readPage<Row, T>(
  statement: Statement,
  limit: number,
  itemOf: (row: Row) => T,
): Steps<Page<T>> {
  const { items, hasMore } = pageOf(yield* rowsOfQuery<Row>(statement), limit);
  return { items: items.map(itemOf), hasMore };
}

/** The statements of a page. */
export interface BoundedPage {
  readonly page: Statement;
  /** Selects the last row that the page may read, if there are so many. Undefined if it shows all that it reads. */
  readonly lastRead: Statement | undefined;
}

export function* readBoundedPage<Row, T>(
  { page, lastRead }: BoundedPage,
  limit: number,
  itemOf: (row: Row) => T,
): Steps<Page<T>> {
  const found = yield* readPage(page, limit, itemOf);
  if (found.hasMore || lastRead === undefined) return found;
  const [last] = yield* rowsOfQuery<{ id: bigint }>(lastRead);
  return last === undefined ? found : { items: found.items, hasMore: true, readTo: last.id };
}

/** Converts the first row, if there is one. */
export function* readFirst<Row, T>(
  itemOf: (row: Row) => T,
  sql: string,
  ...values: Statement["values"]
): Steps<T | undefined> {
  const [row] = yield* rowsOf<Row>(sql, ...values);
  return row && itemOf(row);
}

export interface SqlDatabase {
  readonly dialect: Dialect;
  read<T>(statements: Statements<T>): Awaitable<T>;
  /** Runs one transaction. Its statements may run again. */
  write<T>(statements: Statements<T>): Promise<T>;
}
