/*
 * Both databases share one set of statements. A transaction is a generator that yields its statements and receives
 * their rows, so that it runs at once on SQLite, and with promises on PostgreSQL.
 */

import type { NewAuditEntry } from "../../domain/audit.ts";
import { pageOf } from "../../domain/cursor.ts";
import type { Page } from "../../domain/ports.ts";
import type { Awaitable } from "../../runtime/awaitable.ts";

export type SqlValue = string | number | bigint;

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
  /** The table, and the condition on its rows if it has one. */
  readonly from: string;
  /** The order, which no two rows share. */
  readonly newestFirst: string;
}

/** A condition for all rows of a table but its newest ones. */
export function isAfterNewest(count: number, { key, from, newestFirst }: Newest): string {
  return `${key} IN (SELECT ${key} FROM ${from} ORDER BY ${newestFirst} LIMIT ${ALL} OFFSET ${count})`;
}

/** Encodes values as a JSON array for one parameter, with every integer exact. */
export function jsonArray(values: readonly (SqlValue | null)[]): string {
  return `[${values.map((value) => (typeof value === "bigint" ? value : JSON.stringify(value))).join(",")}]`;
}

/** Encodes rows for the parameter of `given`: the values of each row are in the order of the columns. */
export function jsonRows(rows: readonly (readonly (SqlValue | null)[])[]): string {
  return `[${rows.map(jsonArray).join(",")}]`;
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

export interface JsonMember {
  readonly name: string;
  readonly column: string;
  /** A choice has no characters that JSON escapes. A time is milliseconds since the epoch, in the years 1 to 9999. */
  readonly kind: "integer" | "text" | "choice" | "time";
  readonly isOptional: boolean;
}

type RowLock = "UPDATE NOWAIT" | "NO KEY UPDATE NOWAIT" | "NO KEY UPDATE";

/** `json` is text in SQLite and jsonb in PostgreSQL. */
export type ColumnType = "integer" | "text" | "json";

export interface PetIndex {
  readonly name: string;
  /** The columns before `id`, in the order of the table of filters, with the expressions that are indexed. */
  readonly columns: Readonly<Record<string, string>>;
  /** Which pets are in the index, if not all, and where the few others are. */
  readonly partial?: {
    readonly isIndexed: string;
    readonly isOther: string;
    /** No other pet has this identifier or a lower one. */
    readonly othersAfter: string;
    /** Follows the table, so that the others are read in their order and from no index. */
    readonly inOrder: string;
  };
}

/** How the SQL of the two databases differs. */
export interface Dialect {
  /** Whether a page is found by a comparison of rows, which pet-and-order-lists.ts explains. */
  readonly comparesRows: boolean;
  /** The indexes that pages of pets are read from. Each combination of filters begins one of them. */
  readonly petIndexes: readonly PetIndex[];
  /** A condition that a column, of integers by default, has one of the values in a JSON array. */
  isOneOf(column: string, parameter: string, type?: ColumnType): string;
  /** The rows of a JSON array, which is one parameter, as a table with these columns and their `place`. */
  given(columns: Readonly<Record<string, ColumnType>>, parameter?: string): string;
  /** An expression that sorts a column without regard to the case of ASCII letters. */
  withoutCase(column: string): string;
  /** An expression that sorts a column by its bytes. */
  bytewise(column: string): string;
  /** A condition with a LIKE pattern, which ignores the case of ASCII letters; `\` escapes. */
  like(column: string, parameter: string): string;
  /** A condition with a pattern that `pattern` made. */
  matches(column: string, parameter: string): string;
  /**
   * Makes a pattern from the variants of each character, one or two. `isPart` is whether other text may surround them.
   */
  pattern(characters: readonly (readonly string[])[], isPart: boolean): string;
  /** The labels of a key as the rows of a table with the column `value`. */
  readonly labels: string;
  /** Inserts a row and returns the `id` that the database assigned. */
  insert(table: string, columns: readonly string[]): string;
  /** An expression for a JSON object without spaces. An optional member is omitted where it is NULL. */
  jsonObject(members: readonly JsonMember[]): string;
  /** Keeps others from adding rows to the table until the transaction ends. */
  lockIds(table: string): string;
  /** Keeps others from changing the table until the transaction ends. */
  lockTable(table: string): string;
  /**
   * The end of a SELECT that locks its rows until the transaction ends. With `NO KEY UPDATE`, others can still refer to
   * them. With `NOWAIT`, the statement fails at once if another transaction has locked one of them.
   */
  lockRows(lock: RowLock): string;
  /** Names the index of a SELECT, after its table. PostgreSQL chooses the index by itself. */
  indexedBy(index: string): string;
  /** The clause of an INSERT with identifiers, which the database would otherwise assign. */
  readonly explicitIds: string;
  /**
   * Deletes the first rows in an order that no two rows share, and returns a row for each. The last parameter is their
   * number. Two instances that delete at the same time delete different rows.
   */
  deleteFirst(rows: { readonly table: string; readonly where: string; readonly order: string }): string;
  /** An expression for a text that changes when another copy of the database takes over. */
  readonly timeline: string;
  /** An expression for the time of the database in milliseconds since the epoch. */
  readonly now: string;
  /** Whether that is another clock than the one of this machine. */
  readonly hasOwnClock: boolean;
  /** Statements that write, with the parameters, and then select, without any: one statement where that is possible. */
  writeThenSelect(write: string, select: string): readonly [string, ...string[]];
  /** The sum of the columns `operations` of the rows `stored` and `excluded`, whose form usage-history.ts explains. */
  readonly addedOperations: string;
}

/** Collects the values of a statement while its text is built. */
export class SqlValues {
  readonly all: SqlValue[] = [];

  constructor(readonly dialect: Dialect) {}

  /** Returns the parameter that stands for the value. */
  add(value: SqlValue): string {
    return `?${this.all.push(value)}`;
  }

  isOneOf(column: string, numbers: readonly number[]): string {
    return this.dialect.isOneOf(column, this.add(jsonArray(numbers)));
  }

  /** A condition that a column equals the text, in upper or lower case. */
  isText(column: string, text: string): string {
    return this.#compare(column, text, false);
  }

  /** A condition that a column contains the text, in upper or lower case. */
  hasText(column: string, text: string): string {
    return this.#compare(column, text, true);
  }

  /**
   * Databases without a locale know the case of ASCII letters only, so other letters are searched for in both cases.
   */
  #compare(column: string, text: string, isPart: boolean): string {
    const { dialect } = this;
    const characters = [...text].map(casesOf);
    if (characters.some(([first = "", second]) => first > "\x7f" && second !== undefined)) {
      return dialect.matches(column, this.add(dialect.pattern(characters, isPart)));
    }
    const escaped = text.replaceAll(/[\\%_]/g, (character) => `\\${character}`);
    return dialect.like(column, this.add(isPart ? `%${escaped}%` : escaped));
  }
}

/** The character, and its other case if that is a single character. */
function casesOf(character: string): readonly string[] {
  const others = [character.toLowerCase(), character.toUpperCase()];
  const other = others.find((each) => each !== character && [...each].length === 1);
  return other === undefined ? [character] : [character, other];
}
