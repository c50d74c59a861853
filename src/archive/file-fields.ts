import type { ResourceField, StoredAs, StoredFields } from "../domain/fields.ts";

/** How a value is written. */
export type FieldType = "integer" | "text" | "time" | "json";

export interface FileField {
  readonly type: FieldType;
  /** Whether a missing value is null in JSON, which it is by default, or has no field. */
  readonly ifMissing?: ResourceField["ifMissing"] | undefined;
}

/** The fields in the order of a file. */
export type FileFields<Name extends string = string> = Readonly<Record<Name, FileField>>;

const FILE_TYPES: Readonly<Record<StoredAs, FieldType>> = {
  int64: "integer",
  integer: "integer",
  text: "text",
  choice: "text",
  time: "time",
  json: "json",
};

/** Describes the fields of what is stored in a file. */
export function fileFieldsOf(fields: StoredFields): FileFields {
  const types = Object.entries(fields).map(([name, { storedAs, ifMissing }]) => [
    name,
    { type: FILE_TYPES[storedAs], ifMissing },
  ]);
  return Object.fromEntries(types);
}
