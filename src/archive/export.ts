/** Writes the rows of a database to a file, as NDJSON or CSV. */
import { gzipSync } from "node:zlib";
import { formatOptionalTime } from "../api/formatting.ts";
import { columnOf } from "../domain/fields.ts";
import { OPERATOR_ORDER_FIELDS, PET_FIELDS } from "../domain/resources.ts";
import type { UsageInterval } from "../domain/usage-history.ts";
import { TimeSlice } from "../event-loop.ts";
import {
  API_KEYS,
  fieldsOf,
  KEY_SECRETS,
  ORDERS,
  PETS,
  type Row,
  type Table,
  type TableReader,
  USAGE,
} from "../store/tables.ts";
import { usageRowsOf } from "../store/usage-history.ts";
import type { Output } from "./files.ts";
import {
  ENCODERS,
  type ExportFormat,
  type FileFields,
  fileFieldsOf,
  type LocatedField,
  spreadsheetCell,
} from "./row-formats.ts";

interface Exported {
  /** In the order of the output. */
  readonly fields: FileFields;
  /** Of the rows. A field has the name of its column, in camel case. By default those of the fields. */
  readonly columns?: readonly string[];
  rows(reader: TableReader): AsyncIterable<readonly Row[]>;
}

/** The name of the field of a column: in camel case. */
type FieldName<Column extends string> = Column extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<FieldName<Rest>>}`
  : Column;

/** Every column is a field, except those that are internal. */
function rowsOf<Column extends string, Internal extends Column = never>(
  table: Table<Column>,
  fields: FileFields<FieldName<Exclude<Column, Internal>>>,
): Exported {
  return { fields, columns: Object.keys(table.columns), rows: (reader) => reader.rows(table) };
}

type KeyColumn = keyof typeof API_KEYS.columns;

const KEY_ROWS = rowsOf<KeyColumn, "pardoned_at" | "revision" | "unban_revision">(API_KEYS, {
  id: "integer",
  name: "text",
  owner: "nullable text",
  notes: "nullable text",
  labels: "json",
  plan: "text",
  perMinute: "integer",
  perDay: "integer",
  access: "text",
  createdAt: "time",
  expiresAt: "time",
  revokedAt: "time",
  disabledAt: "time",
});

const KEY_ROWS_WITH_HASHES: Exported = {
  fields: { ...KEY_ROWS.fields, secrets: "json" },
  columns: [...Object.keys(API_KEYS.columns), "secrets"],
  /** Both tables are in the order of the keys. */
  async *rows(reader) {
    const secrets = each(reader, KEY_SECRETS);
    let next = await secrets.next();
    for await (const keys of reader.rows(API_KEYS)) {
      const rows: Row[] = [];
      for (const key of keys) {
        const own: object[] = [];
        while (next.done !== true && Number(next.value.key_id) <= Number(key[0])) {
          const { hash, hint, issued_at: createdAt, valid_until: validUntil } = next.value;
          own.push({ hash, hint, createdAt: timeOf(createdAt), validUntil: timeOf(validUntil) });
          next = await secrets.next();
        }
        rows.push([...key, JSON.stringify(own)]);
      }
      yield rows;
    }
  },
};

async function* each<Column extends string>(reader: TableReader, table: Table<Column>) {
  for await (const rows of reader.rows(table)) for (const row of rows) yield fieldsOf(table, row);
}

function timeOf(text: string | null): string | null {
  return formatOptionalTime(text === null ? undefined : Number(text));
}

function usageRows(by: UsageInterval): Exported {
  return {
    fields: {
      keyId: "integer",
      start: "time",
      operation: "text",
      admitted: "integer",
      limited: "integer",
      banned: "integer",
      errors: "integer",
    },
    async *rows(reader) {
      for await (const rows of reader.rows(USAGE[by])) yield rows.flatMap(usageByOperation);
    },
  };
}

/** A row for each operation. */
function usageByOperation(row: Row): Row[] {
  const { key_id: keyId, start, operations, ...counts } = fieldsOf(USAGE.day, row);
  const stored = {
    start: Number(start),
    admitted: Number(counts.admitted),
    limited: Number(counts.limited),
    banned: Number(counts.banned),
    errors: Number(counts.errors),
    operations: operations ?? "{}",
  };
  return usageRowsOf(Number(keyId), stored).map(({ operation, admitted, limited, banned, errors }) =>
    [keyId, start, operation, admitted, limited, banned, errors].map(String),
  );
}

export const EXPORT_KINDS = ["pets", "orders", "keys", "usage"] as const;
export type ExportKind = (typeof EXPORT_KINDS)[number];

interface ExportOptions {
  readonly reader: TableReader;
  readonly kind: ExportKind;
  /** Of usage. */
  readonly by: UsageInterval;
  /** Of keys. */
  readonly withHashes: boolean;
  readonly format: ExportFormat;
  /** Of CSV: no cell looks like a formula. */
  readonly forSpreadsheets?: boolean;
  readonly isGzip: boolean;
  readonly output: Output;
  readonly onProgress: (rows: number) => void;
  /** Whether the export is to end without its output. */
  readonly isStopped: () => boolean;
}

/** Bounds the memory. */
const PIECE_LENGTH = 64 * 1024;
/** A piece of gzip is compressed by itself, and this long it is compressed as well as a whole. */
const GZIP_PIECE_LENGTH = 1024 * 1024;

/** Returns the number of rows, or undefined if it was stopped. */
export async function exportRows(options: ExportOptions): Promise<number | undefined> {
  const { format, isGzip, output, onProgress, isStopped } = options;
  const exported = exportedOf(options);
  const { header, encoder } = ENCODERS[format];
  const encode = encoder(located(exported), options.forSpreadsheets ? spreadsheetCell : undefined);
  const write = (text: string) => output.write(isGzip ? gzipSync(text) : text);
  let text = header(Object.keys(exported.fields));
  let count = 0;
  // SQLite works without iterations of the event loop, and without them no signal arrives.
  const slice = new TimeSlice();
  for await (const rows of exported.rows(options.reader)) {
    await slice.next();
    if (isStopped()) return undefined;
    for (const row of rows) text += encode(row);
    count += rows.length;
    if (text.length < (isGzip ? GZIP_PIECE_LENGTH : PIECE_LENGTH)) continue;
    await write(text);
    text = "";
    onProgress(count);
  }
  // An empty file is not gzip.
  if (text !== "" || (count === 0 && isGzip)) await write(text);
  output.finish();
  return count;
}

function exportedOf({ kind, by, withHashes }: ExportOptions): Exported {
  if (kind === "pets") return rowsOf(PETS, fileFieldsOf(PET_FIELDS));
  if (kind === "orders") return rowsOf(ORDERS, fileFieldsOf(OPERATOR_ORDER_FIELDS));
  if (kind === "usage") return usageRows(by);
  return withHashes ? KEY_ROWS_WITH_HASHES : KEY_ROWS;
}

/** The fields, and where each of them is in a row. */
function located({ fields, columns }: Exported): LocatedField[] {
  return Object.entries(fields).map(([name, type], index) => {
    return { name, type, position: columns?.indexOf(columnOf(name)) ?? index };
  });
}
