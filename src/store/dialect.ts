/** What differs between the databases in SQL that both stores build from parts. */
export interface Dialect {
  /** The nth parameter. */
  parameter(n: number): string;
  /** Follows the name of the table, for a planner without statistics. */
  indexedBy(index: string): string;
  /** A list as the value of one parameter, and the condition that a column has one of its numbers. */
  list(numbers: readonly number[]): string;
  isOneOf(column: string, parameter: string): string;
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
}

export interface SqlQuery {
  readonly sql: string;
  readonly values: SqlValue[];
}

export type SqlValue = string | number | bigint;

/** Collects the values of a statement while its text is built. */
export class SqlValues {
  readonly all: SqlValue[] = [];

  constructor(readonly dialect: Dialect) {}

  /** Returns the parameter that stands for the value. */
  add(value: SqlValue): string {
    return this.dialect.parameter(this.all.push(value));
  }

  isOneOf(column: string, numbers: readonly number[]): string {
    return this.dialect.isOneOf(column, this.add(this.dialect.list(numbers)));
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
};

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
};

function globOf(cases: readonly string[]): string {
  const text = cases.join("");
  return cases.length > 1 || /[*?[]/.test(text) ? `[${text}]` : text;
}

/** Every ASCII character that is no letter and no digit can be escaped. */
function regexOf(cases: readonly string[]): string {
  const text = cases.join("");
  if (cases.length > 1) return `[${text}]`;
  return /[!-/:-@[-`{-~]/.test(text) ? `\\${text}` : text;
}
