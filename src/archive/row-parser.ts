import { parseFields, parseIdentifier } from "../api/json.ts";
import { Invalid } from "../api/schema.ts";
import type { ImportedRow, RowProblem, RowType } from "./import-kinds.ts";
import { InputError, type SourceRow } from "./row-formats.ts";

/** Leaves more identifiers for new pets and orders than will ever be assigned. */
const MAX_KEPT_ID = 2n ** 62n;

export type ParseRow<T> = (row: SourceRow) => T | RowProblem;

/** Validates the rows of a JSON file. */
export function jsonRowParser<T extends ImportedRow>(type: RowType<T>): ParseRow<T> {
  const names = Object.keys(type.fields);
  const read = validator(type, (field) => field);
  return ({ text }) => {
    const fields = parseFields(text, names);
    if (fields === undefined) return "the row is not valid JSON";
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      return "the row is not a JSON object";
    }
    return read(fields);
  };
}

/** Validates the rows of a CSV file. An empty cell of a field that can be missing is a missing field. */
export function csvRowParser<T extends ImportedRow>(
  type: RowType<T>,
  header: readonly string[],
): ParseRow<T> {
  const { schema, fields } = type;
  const indexes = columnIndexes(header, { names: schema.names, required: Object.keys(schema.required) });
  const columns = Object.entries(fields).flatMap(([field, fieldType]) => {
    const index = indexes.get(field);
    if (index === undefined) return [];
    return [{ field, index, isInteger: fieldType === "integer", isOptional: field in schema.optional }];
  });
  const read = validator(type, (field) => header[indexes.get(field) ?? -1] ?? field);
  return ({ cells = [], problem }) => {
    if (problem !== undefined) return `the row ${problem}`;
    if (cells.length !== header.length) {
      return `the row has ${cells.length} columns instead of ${header.length}`;
    }
    const values: Record<string, unknown> = {};
    for (const { field, index, isInteger, isOptional } of columns) {
      const cell = cells[index] ?? "";
      if (cell === "" && isOptional) continue;
      values[field] = isInteger ? (parseIdentifier(cell) ?? cell) : cell;
    }
    return read(values);
  };
}

/** Reads with the schema. Every problem begins with the name of a field, which becomes that of its column. */
function validator<T extends ImportedRow>(
  type: RowType<T>,
  nameOf: (field: string) => string,
): (fields: object) => T | RowProblem {
  const named = (problem: RowProblem) => {
    const [field = ""] = problem.split(" ", 1);
    return nameOf(field) + problem.slice(field.length);
  };
  return (fields) => {
    const value = type.schema.readBody(fields);
    if (value instanceof Invalid) return value.problems.map(named).join("; ");
    const problem = type.problemOf?.(value);
    if (problem !== undefined) return named(problem);
    const { id = 1n } = value;
    return id >= 1n && id <= MAX_KEPT_ID ? value : `${nameOf("id")} must be from 1 to 2^62`;
  };
}

/** The index of the column of each field that the header names. */
function columnIndexes(
  header: readonly string[],
  { names, required }: { readonly names: readonly string[]; readonly required: readonly string[] },
): ReadonlyMap<string, number> {
  const columns = header.map(plain);
  const indexes = new Map<string, number>();
  for (const field of names) {
    const [index, second] = columnsNamed(columns, field);
    if (second !== undefined)
      throw new InputError(`line 1 names two columns for ${field}; rename one of them`);
    if (index !== undefined) indexes.set(field, index);
  }
  const missing = required.filter((field) => !indexes.has(field));
  if (missing.length === 0) return indexes;
  throw new InputError(
    `line 1 must be a header that names the columns ${required.join(", ")}; it lacks ${missing.join(", ")}`,
  );
}

/** `Category ID`, `category_id` and `categoryId` are one name. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** The columns that have the name of a field. */
function columnsNamed(columns: readonly string[], field: string): number[] {
  const found = indexesOf(columns, plain(field));
  return found.length === 0 && field.endsWith("Id") ? indexesOf(columns, plain(field.slice(0, -2))) : found;
}

function indexesOf(names: readonly string[], name: string): number[] {
  return names.flatMap((each, index) => (each === name ? [index] : []));
}
