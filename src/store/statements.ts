import type { NewAuditEntry } from "../domain/audit.ts";
import type { Page } from "../domain/ports.ts";
import type { Awaitable } from "../runtime/event-loop.ts";

/*
 * One set of statements for both databases. A transaction is a generator that yields its statements and gets their
 * rows, so that it runs at once on SQLite, and with promises on PostgreSQL.
 */

export type SqlValue = string | number | bigint;

export interface Statement {
  /** Its parameters are `?`, or all of them `?1`, `?2`, …. An empty statement does nothing. */
  readonly sql: string;
  readonly values: readonly (SqlValue | Uint8Array | null)[];
  /** Whether the text depends on what is asked for, so that it is not kept as a prepared statement. */
  readonly isVaried?: boolean;
  /** Of a statement that adds an entry to the audit trail and returns its `id`. */
  readonly audited?: NewAuditEntry;
}

/** Statements one after the other: each is answered with its rows. */
export type Steps<T> = Generator<Statement, T, unknown[]>;
export type Statements<T> = () => Steps<T>;

export function* rowsOf<Row>(sql: string, ...values: Statement["values"]): Steps<Row[]> {
  return yield* rowsOfQuery<Row>({ sql, values });
}

export function* rowsOfQuery<Row>(statement: Statement): Steps<Row[]> {
  // They have what the statement selects.
  return (yield statement) as Row[];
}

/** A row that a statement always returns. */
export function requireRow<Row>(row: Row | undefined): Row {
  if (row === undefined) throw new Error("the database returned fewer rows than it was asked for");
  return row;
}

/** Where no integer is beyond 2^53. */
export function* numberRowsOf<Row>(sql: string, ...values: Statement["values"]): Steps<Row[]> {
  const rows = yield* rowsOf<Record<string, unknown>>(sql, ...values);
  for (const row of rows) {
    for (const [name, value] of Object.entries(row)) {
      if (typeof value === "bigint") row[name] = Number(value);
    }
  }
  // They have what the statement selects.
  return rows as Row[];
}

/** The same; columns that are null in the row are absent from the object. */
export function* objectsOf<T>(sql: string, ...values: Statement["values"]): Steps<T[]> {
  return (yield* rowsOf<object>(sql, ...values)).map(objectOf<T>);
}

export function objectOf<T>(row: object): T {
  const object: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(row)) {
    if (value !== null) object[name] = typeof value === "bigint" ? Number(value) : value;
  }
  // They have what the statement selects.
  return object as T;
}

export function withoutNulls<T>(object: object): T {
  // The type says what is left.
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null)) as T;
}

/** A JSON array as the value of one parameter, exact for every integer. */
export function jsonArray(values: readonly (SqlValue | null)[]): string {
  return `[${values.map((value) => (typeof value === "bigint" ? value : JSON.stringify(value))).join(",")}]`;
}

/** The value of the parameter of `given`: the values of each row in the order of the columns. */
export function jsonRows(rows: readonly (readonly (SqlValue | null)[])[]): string {
  return `[${rows.map(jsonArray).join(",")}]`;
}

/** The statement selects one row more than the limit where there is one: it shows that the page has a successor. */
export function* readPage<Row, T>(
  statement: Statement,
  limit: number,
  itemOf: (row: Row) => T,
): Steps<Page<T>> {
  const rows = yield* rowsOfQuery<Row>(statement);
  const hasMore = rows.length > limit;
  if (hasMore) rows.length = limit;
  return { items: rows.map(itemOf), hasMore };
}

/** What the first row becomes, if there is one. */
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
  /** One transaction. The statements may run again. */
  write<T>(statements: Statements<T>): Promise<T>;
}

export interface JsonMember {
  readonly name: string;
  readonly column: string;
  /** A choice is text without characters that JSON escapes. */
  readonly kind: "integer" | "text" | "choice";
  readonly isOptional: boolean;
}

type RowLock = "UPDATE NOWAIT" | "NO KEY UPDATE NOWAIT" | "NO KEY UPDATE";

/** `json` is text in SQLite and jsonb in PostgreSQL. */
export type ColumnType = "integer" | "text" | "json";

/** What differs between the databases in SQL that both stores build from parts. */
export interface Dialect {
  /** Whether a page is found by a comparison of rows; see pages.ts. */
  readonly comparesRows: boolean;
  /** Condition that a column, of integers by default, has one of the values of a JSON array. */
  isOneOf(column: string, parameter: string, type?: ColumnType): string;
  /** The rows of a JSON array, which is a parameter, as a table with these columns and their `place`. */
  given(columns: Readonly<Record<string, ColumnType>>): string;
  /** A column for an order that ignores the case of ASCII letters, and one for an order of bytes. */
  withoutCase(column: string): string;
  bytewise(column: string): string;
  /** Condition with a pattern of LIKE that ignores the case of ASCII letters; `\` escapes. */
  like(column: string, parameter: string): string;
  /** Condition with a pattern of classes, which is made by `pattern`. */
  matches(column: string, parameter: string): string;
  /** For each character what it can be: one character or two. `isPart`: whether other text may surround them. */
  pattern(characters: readonly (readonly string[])[], isPart: boolean): string;
  /** The labels of a key as rows of a table, whose column is `value`. */
  readonly labels: string;
  /** Inserts a row and returns its `id`, which the database assigns. */
  insert(table: string, columns: readonly string[]): string;
  /** An expression for a JSON object without spaces. A member that is optional is left out where it is NULL. */
  jsonObject(members: readonly JsonMember[]): string;
  /** Nobody else adds a row until the end of the transaction. */
  lockIds(table: string): string;
  /** Nobody else changes the table until the end of the transaction. */
  lockTable(table: string): string;
  /**
   * The end of a SELECT whose rows stay as they are until the end of the transaction. `NO KEY UPDATE` lets others refer
   * to them. With `NOWAIT`, the statement fails at once if another transaction has locked one of them.
   */
  lockRows(lock: RowLock): string;
  /** After the table of a SELECT: the index that it is read by. PostgreSQL finds the best one by itself. */
  indexedBy(index: string): string;
  /** The clause of an INSERT that sets the identifiers, which the database assigns otherwise. */
  readonly explicitIds: string;
  /**
   * Deletes the first rows in an order that no two rows share, and returns a row for each. The last parameter is how
   * many. Two instances that delete at the same time delete different rows.
   */
  deleteFirst(rows: { readonly table: string; readonly where: string; readonly order: string }): string;
  /** A number that changes when another copy of the database takes over. */
  readonly timeline: string;
  /** The sum of the columns `operations` of the rows `stored` and `excluded`; see usage-history.ts. */
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

  /** Whether a column is the text, in upper or lower case. */
  isText(column: string, text: string): string {
    return this.#compare(column, text, false);
  }

  /** Whether a column contains the text, in upper or lower case. */
  hasText(column: string, text: string): string {
    return this.#compare(column, text, true);
  }

  /** Databases without a locale know the case of ASCII letters only, so other letters are looked for in both cases. */
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

/** The character, and the same in the other case if that is one character. */
function casesOf(character: string): readonly string[] {
  const others = [character.toLowerCase(), character.toUpperCase()];
  const other = others.find((each) => each !== character && [...each].length === 1);
  return other === undefined ? [character] : [character, other];
}
