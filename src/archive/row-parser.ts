import { parseFields } from "../api/json-fields.ts";
import { parseIdentifier } from "../api/json.ts";
import { Invalid, type ObjectSchema } from "../api/schema.ts";
import type { RowProblem } from "../domain/data-transfer.ts";
import { type ColumnMapping, type Columns, columnsOf } from "./columns.ts";
import type { SourceRow } from "./source-row.ts";

/** What the rows of a file become. */
export interface RowType<T> {
  readonly schema: ObjectSchema<unknown>;
  /** In the order of a CSV file without a header. */
  readonly fields: readonly string[];
  /** Those that CSV writes in decimal digits. */
  readonly integers: ReadonlySet<string>;
  /** Turns what the schema has read into a row; a text is a problem. */
  toRow(value: unknown): T | RowProblem;
}

/** Validates the rows of a JSON file. */
export class JsonRowParser<T> {
  readonly #names: readonly string[];
  readonly #renamed: readonly ColumnMapping[];
  readonly #rules: Rules<T>;

  constructor(type: RowType<T>, map: readonly ColumnMapping[]) {
    const nameOf = (field: string) => map.find((mapping) => mapping.field === field)?.column ?? field;
    this.#names = type.fields.map(nameOf);
    this.#renamed = map;
    this.#rules = new Rules(type, nameOf);
  }

  parse({ text }: SourceRow): T | RowProblem {
    const fields = parseFields(text, this.#names);
    if (fields === undefined) return "the row is not valid JSON";
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      return "the row is not a JSON object";
    }
    return this.#rules.apply(this.#renamed.length === 0 ? fields : this.#rename(fields));
  }

  #rename(given: object): Record<string, unknown> {
    const fields: Record<string, unknown> = { ...given };
    for (const { field } of this.#renamed) delete fields[field];
    for (const { field, column } of this.#renamed) {
      if (Object.hasOwn(given, column)) fields[field] = Reflect.get(given, column);
    }
    return fields;
  }
}

/** Validates the rows of a CSV file. An empty cell of a field that can be missing is a missing field. */
export class CsvRowParser<T> {
  readonly columns: Columns;
  readonly #width: number;
  readonly #fields: readonly { field: string; index: number; isInteger: boolean; isOptional: boolean }[];
  readonly #rules: Rules<T>;

  /** `first` is the first row of the file, which may be a header. */
  constructor(type: RowType<T>, first: readonly string[], map: readonly ColumnMapping[]) {
    const { schema, fields, integers } = type;
    const { indexes, header, hasHeader } = (this.columns = columnsOf(first, {
      fields,
      required: Object.keys(schema.required),
      map,
    }));
    this.#width = first.length;
    this.#fields = fields.flatMap((field) => {
      const index = indexes.get(field);
      if (index === undefined || !schema.names.includes(field)) return [];
      return [{ field, index, isInteger: integers.has(field), isOptional: field in schema.optional }];
    });
    this.#rules = new Rules(type, (field) => {
      const index = indexes.get(field) ?? 0;
      return (hasHeader && header[index]) || `column ${index + 1} (${field})`;
    });
  }

  parse({ cells = [], problem }: SourceRow): T | RowProblem {
    if (problem !== undefined) return `the row ${problem}`;
    if (cells.length !== this.#width) return `the row has ${cells.length} columns instead of ${this.#width}`;
    const values: Record<string, unknown> = {};
    for (const { field, index, isInteger, isOptional } of this.#fields) {
      const cell = cells[index] ?? "";
      if (cell === "" && isOptional) continue;
      values[field] = isInteger ? (parseIdentifier(cell) ?? cell) : cell;
    }
    return this.#rules.apply(values);
  }
}

/** The schema, with problems that name the columns of the file. */
class Rules<T> {
  readonly #type: RowType<T>;
  readonly #nameOf: (field: string) => string;

  constructor(type: RowType<T>, nameOf: (field: string) => string) {
    this.#type = type;
    this.#nameOf = nameOf;
  }

  apply(fields: object): T | RowProblem {
    const value = this.#type.schema.read(fields);
    if (value instanceof Invalid) return value.problems.map((problem) => this.#named(problem)).join("; ");
    const row = this.#type.toRow(value);
    return typeof row === "string" ? this.#named(row) : row;
  }

  /** Every problem begins with the name of a field. */
  #named(problem: RowProblem): RowProblem {
    const [field = ""] = problem.split(" ", 1);
    return this.#nameOf(field) + problem.slice(field.length);
  }
}
