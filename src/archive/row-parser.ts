import { parseIdentifier } from "../api/json.ts";
import { NotJson, parseFields } from "../api/json-fields.ts";
import { Invalid, type ObjectSchema } from "../api/schema.ts";
import { withoutId } from "../domain/fields.ts";
import { PET_FIELDS } from "../domain/pets-and-orders.ts";
import { fileFieldsOf } from "./file-fields.ts";
import type { ImportedPet } from "./imported-pets.ts";
import { InputError, type SourceRow } from "./row-reader.ts";

/**
 * The highest identifier that a row can keep. Above it are more identifiers than new pets will ever need.
 */
const MAX_KEPT_ID = 2n ** 62n;

const FIELDS = fileFieldsOf(PET_FIELDS);

export interface RowParser {
  parse(row: SourceRow): ImportedPet | Invalid;
  /** The name of a field in the file. */
  nameOf(field: string): string;
}

/** Validates the rows of a JSON file. Null means that the field is missing, if it can be. */
export function jsonRowParser(schema: ObjectSchema<ImportedPet>): RowParser {
  const names = Object.keys(FIELDS);
  const optional = names.filter((name) => FIELDS[name]?.ifMissing === "absent");
  return {
    parse({ text }) {
      const fields = parseFields(text, { names });
      if (fields instanceof NotJson) return new Invalid("is not valid JSON");
      if (fields instanceof Invalid) return fields;
      if (typeof fields === "object" && fields !== null)
        for (const name of optional)
          if (Reflect.get(fields, name) === null) Reflect.deleteProperty(fields, name);
      return validated(fields, schema);
    },
    nameOf: (field) => field,
  };
}

/** Validates the rows of a CSV file. An empty cell means that the field is missing, if it can be. */
export function csvRowParser(schema: ObjectSchema<ImportedPet>, header: readonly string[]): RowParser {
  const indexes = columnIndexes(header, { names: schema.names, required: Object.keys(schema.required) });
  const columns = Object.entries(FIELDS).flatMap(([field, { type: fieldType, ifMissing }]) => {
    const index = indexes.get(field);
    if (index === undefined) return [];
    return [{ field, index, isInteger: fieldType === "integer", isOptional: ifMissing !== undefined }];
  });
  return {
    parse({ cells = [], problem }) {
      if (problem !== undefined) return new Invalid(problem);
      if (cells.length !== header.length)
        return new Invalid(`has ${cells.length} columns instead of ${header.length}`);
      const values: Record<string, unknown> = {};
      for (const { field, index, isInteger, isOptional } of columns) {
        const cell = cells[index] ?? "";
        if (cell === "" && isOptional) continue;
        values[field] = isInteger ? (parseIdentifier(cell) ?? cell) : cell;
      }
      return validated(values, schema);
    },
    nameOf: (field) => header[indexes.get(field) ?? -1] ?? field,
  };
}

function validated(fields: unknown, schema: ObjectSchema<ImportedPet>): ImportedPet | Invalid {
  const value = schema.read(fields);
  if (value instanceof Invalid) return value;
  const { id = 1n } = value;
  if (id < 1n || id > MAX_KEPT_ID) return new Invalid("must be from 1 to 2^62", "id");
  return value;
}

/** The index of the column for each field that the header names. */
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

/** Normalizes a name, so that `Pet ID`, `pet_id` and `petId` are equal. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** Finds the columns with the name of a field. */
function columnsNamed(columns: readonly string[], field: string): number[] {
  const found = indexesOf(columns, plain(field));
  return found.length === 0 ? indexesOf(columns, plain(withoutId(field))) : found;
}

function indexesOf(names: readonly string[], name: string): number[] {
  return names.flatMap((each, index) => (each === name ? [index] : []));
}
