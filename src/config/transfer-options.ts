import { USAGE_INTERVALS } from "../domain/usage-history.ts";
import type { Options } from "./parse-options.ts";
import { switchOption, choice, file, integerWithin, list, type ValueType } from "./value-types.ts";

/** What an import does with a row whose identifier exists already. */
const CONFLICT_RULES = ["reject", "skip", "replace"] as const;
export type ConflictRule = (typeof CONFLICT_RULES)[number];

const MAPPING = /^(?<field>\w+)=(?<column>.+)$/s;

/** A field of a pet or an order, and the column or the JSON field that has its value. */
export interface ColumnMapping {
  readonly field: string;
  readonly column: string;
}

const mapping: ValueType<ColumnMapping> = {
  placeholder: "FIELD=COLUMN",
  expected: "a field and the name or number of its column, such as name=Title or name=2",
  parse: (text) => {
    const { field, column } = MAPPING.exec(text)?.groups ?? {};
    return field === undefined || column === undefined ? undefined : { field, column };
  },
  format: ({ field, column }) => `${field}=${column}`,
};

const delimiter: ValueType<string> = {
  placeholder: "CHAR",
  expected: "one character other than a quote, or tab",
  parse: (text) => {
    if (text === "tab") return "\t";
    return text.length === 1 && !/["\r\n]/.test(text) ? text : undefined;
  },
  format: (value) => (value === "\t" ? "tab" : value),
};

/** Options of `petstore import`. */
export const IMPORT_OPTIONS = {
  orders: switchOption("Import orders instead of pets"),
  "keep-ids": switchOption("Keep the identifiers of the file instead of assigning new ones"),
  "on-conflict": {
    type: choice("RULE", CONFLICT_RULES),
    default: "reject",
    help: "What becomes of a row whose identifier exists already; only with --keep-ids",
  },
  map: {
    type: list(mapping),
    default: [],
    defaultText: "columns with the names of the fields",
    repeatable: true,
    help: "Where the values of fields are, for columns with other names; can be repeated",
  },
  delimiter: { type: delimiter, defaultText: "what the first line has most", help: "Delimiter of CSV" },
  "dry-run": switchOption("Read and check everything, and store nothing"),
  "max-errors": {
    type: integerWithin({ min: 0, max: 1_000_000_000 }),
    default: 100,
    help: "Rows that may be rejected; the import stops at the next one",
  },
  rejects: {
    type: file,
    defaultText: "FILE.rejects",
    help: "File for the rejected rows, each with its error; it can be corrected and imported",
  },
  again: switchOption("Import a file from its beginning that was imported before"),
} as const satisfies Options;

/** What can be exported. */
export const EXPORT_KINDS = ["pets", "orders", "keys", "usage"] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

const EXPORT_FORMATS = ["ndjson", "csv"] as const;

/** Options of `petstore export`. */
export const EXPORT_OPTIONS = {
  format: {
    type: choice("FORMAT", EXPORT_FORMATS),
    defaultText: "csv for a FILE with .csv in its name, otherwise ndjson",
    help: "One JSON object on each line, or CSV with a header",
  },
  gzip: { ...switchOption("Compress the output"), defaultText: "for a FILE that ends with .gz" },
  hashes: switchOption("Export the hashes of the secrets too; only for keys"),
  by: {
    type: choice("INTERVAL", USAGE_INTERVALS),
    default: "day",
    help: "What a row adds up: an hour or a day (both UTC); only for usage",
  },
} as const satisfies Options;
