import { InputError } from "./input-error.ts";

/** A field, and the column or the JSON field that has its value. */
export interface ColumnMapping {
  readonly field: string;
  readonly column: string;
}

export interface Columns {
  /** The index of each field's column. */
  readonly indexes: ReadonlyMap<string, number>;
  /** The first line, or one that would name the same columns. */
  readonly header: readonly string[];
  /** Otherwise the first line is a row. */
  readonly hasHeader: boolean;
}

export interface ColumnOptions {
  /** In the order of a file without a header; those in front may be missing. */
  readonly fields: readonly string[];
  readonly required: readonly string[];
  readonly map: readonly ColumnMapping[];
}

/** The columns of CSV by its first line. */
export function columnsOf(first: readonly string[], { fields, required, map }: ColumnOptions): Columns {
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

/** Without a header: all fields, or all but the identifier, or the first of those. */
function fieldsByPosition(fields: readonly string[], count: number): readonly string[] {
  const withoutId = fields.filter((field) => field !== "id");
  return count > withoutId.length ? fields : withoutId.slice(0, count);
}

function missingColumn(field: string, first: readonly string[], hasHeader: boolean): string {
  if (!hasHeader) {
    return `line 1 is no header, and with ${first.length} columns none is ${field}; add --map ${field}=NUMBER`;
  }
  return `line 1 has no column ${field}; add --map ${field}=COLUMN`;
}
