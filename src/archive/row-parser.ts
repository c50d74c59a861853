import { parseFields, parseIdentifier } from "../api/json.ts";
import { Invalid } from "../api/schema.ts";
import type { ImportedRow, RowProblem, RowType } from "./import-kinds.ts";
import { InputError, type SourceRow } from "./row-formats.ts";

/** Leaves more identifiers for new pets and orders than will ever be assigned. */
const MAX_KEPT_ID = 2n ** 62n;

/** A field of a pet or an order, and the column or the JSON field that has its value. */
export interface ColumnMapping {
  readonly field: string;
  readonly column: string;
}

export type ParseRow<T> = (row: SourceRow) => T | RowProblem;

/** Validates the rows of a JSON file. */
export function jsonRowParser<T extends ImportedRow>(
  type: RowType<T>,
  map: readonly ColumnMapping[],
): ParseRow<T> {
  const nameOf = (field: string) => map.find((mapping) => mapping.field === field)?.column ?? field;
  const names = Object.keys(type.fields).map(nameOf);
  const read = validator(type, nameOf);
  return ({ text }) => {
    const fields = parseFields(text, names);
    if (fields === undefined) return "the row is not valid JSON";
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      return "the row is not a JSON object";
    }
    return read(map.length === 0 ? fields : renamed(fields, map));
  };
}

function renamed(given: object, map: readonly ColumnMapping[]): Record<string, unknown> {
  const fields: Record<string, unknown> = { ...given };
  for (const { field } of map) delete fields[field];
  for (const { field, column } of map) {
    if (Object.hasOwn(given, column)) fields[field] = Reflect.get(given, column);
  }
  return fields;
}

/**
 * Validates the rows of a CSV file. An empty cell of a field that can be missing is a missing field. `first` is the
 * first row of the file, which may be a header.
 */
export function csvRowParser<T extends ImportedRow>(
  type: RowType<T>,
  first: readonly string[],
  map: readonly ColumnMapping[],
): Columns & { readonly parse: ParseRow<T> } {
  const { schema, fields } = type;
  const required = Object.keys(schema.required);
  const columns = columnsOf(first, { fields: Object.keys(fields), required, map });
  const { indexes, header, hasHeader } = columns;
  const present = Object.entries(fields).flatMap(([field, fieldType]) => {
    const index = indexes.get(field);
    if (index === undefined || !schema.names.includes(field)) return [];
    return [{ field, index, isInteger: fieldType === "integer", isOptional: field in schema.optional }];
  });
  const read = validator(type, (field) => {
    const index = indexes.get(field) ?? 0;
    return (hasHeader && header[index]) || `column ${index + 1} (${field})`;
  });
  const parse = ({ cells = [], problem }: SourceRow) => {
    if (problem !== undefined) return `the row ${problem}`;
    if (cells.length !== first.length) {
      return `the row has ${cells.length} columns instead of ${first.length}`;
    }
    const values: Record<string, unknown> = {};
    for (const { field, index, isInteger, isOptional } of present) {
      const cell = cells[index] ?? "";
      if (cell === "" && isOptional) continue;
      values[field] = isInteger ? (parseIdentifier(cell) ?? cell) : cell;
    }
    return read(values);
  };
  return { ...columns, parse };
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

interface Columns {
  /** The index of each field's column. */
  readonly indexes: ReadonlyMap<string, number>;
  /** The first line, or one that would name the same columns. */
  readonly header: readonly string[];
  /** Otherwise the first line is a row. */
  readonly hasHeader: boolean;
}

interface ColumnOptions {
  /** In the order of a file without a header; those in front may be missing. */
  readonly fields: readonly string[];
  readonly required: readonly string[];
  readonly map: readonly ColumnMapping[];
}

/** The columns of CSV by its first line. */
function columnsOf(first: readonly string[], { fields, required, map }: ColumnOptions): Columns {
  const names = first.map(plain);
  const hasHeader =
    map.some(({ column }) => first.includes(column)) ||
    fields.some((field) => named(names, field).length > 0);
  const indexes = new Map<string, number>();
  for (const field of fields) {
    const mapped = map.find((mapping) => mapping.field === field);
    const index = mapped
      ? mappedIndex(mapped, first)
      : hasHeader
        ? onlyIndex(named(names, field), field)
        : -1;
    if (index !== -1) indexes.set(field, index);
  }
  if (!hasHeader && map.length === 0) {
    const present = fieldsByPosition(fields, first.length);
    for (const [index, field] of present.entries()) indexes.set(field, index);
  }
  const missing = required.find((field) => !indexes.has(field));
  if (missing !== undefined) throw new InputError(missingColumn(missing, first, hasHeader));
  return { indexes, header: hasHeader ? first : headerOf(indexes, first.length), hasHeader };
}

function headerOf(indexes: ReadonlyMap<string, number>, width: number): string[] {
  const header = Array.from({ length: width }, (_, index) => `column ${index + 1}`);
  for (const [field, index] of indexes) header[index] = field;
  return header;
}

function mappedIndex({ field, column }: ColumnMapping, first: readonly string[]): number {
  const index = onlyIndex(indexesOf(first, column), field);
  if (index !== -1) return index;
  const number = /^[1-9]\d{0,3}$/.test(column) ? Number(column) : Infinity;
  if (number <= first.length) return number - 1;
  throw new InputError(`--map ${field}=${column}: the first line has no such column`);
}

/** `Category ID`, `category_id` and `categoryId` are one name. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** The columns that have the name of a field. */
function named(names: readonly string[], field: string): number[] {
  const columns = indexesOf(names, plain(field));
  return columns.length === 0 && field.endsWith("Id") ? indexesOf(names, plain(field.slice(0, -2))) : columns;
}

function indexesOf(names: readonly string[], name: string): number[] {
  return names.flatMap((each, index) => (each === name ? [index] : []));
}

function onlyIndex(columns: readonly number[], field: string): number {
  const [index = -1, second] = columns;
  if (second === undefined) return index;
  throw new InputError(
    `line 1 names two columns for ${field}, ${index + 1} and ${second + 1}; choose one with --map ${field}=NUMBER`,
  );
}

/** Without a header: all fields, or all but the identifier, or the first of those. Earlier files have no `closedAt`. */
function fieldsByPosition(fields: readonly string[], count: number): readonly string[] {
  const withId = fields.filter((field) => field !== "closedAt");
  const withoutId = withId.filter((field) => field !== "id");
  return count > withoutId.length ? withId : withoutId.slice(0, count);
}

function missingColumn(field: string, first: readonly string[], hasHeader: boolean): string {
  if (!hasHeader) {
    return `line 1 is no header, and with ${first.length} columns none is ${field}; add --map ${field}=NUMBER`;
  }
  return `line 1 has no column ${field}; add --map ${field}=COLUMN`;
}
