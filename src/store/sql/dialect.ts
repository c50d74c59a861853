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
  tableOfJson(columns: Readonly<Record<string, ColumnType>>, parameter?: string): string;
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
   * number. Two servers that delete at the same time delete different rows.
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
