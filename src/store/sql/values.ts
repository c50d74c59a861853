import type { Dialect } from "./dialect.ts";

export type SqlValue = string | number | bigint;

/** Encodes values as a JSON array for one parameter, with every integer exact. */
export function jsonArray(values: readonly (SqlValue | null)[]): string {
  return `[${values.map((value) => (typeof value === "bigint" ? value : JSON.stringify(value))).join(",")}]`;
}

/** Encodes rows for the parameter of `tableOfJson`: the values of each row are in the order of the columns. */
export function jsonRows(rows: readonly (readonly (SqlValue | null)[])[]): string {
  return `[${rows.map(jsonArray).join(",")}]`;
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
