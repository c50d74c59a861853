/* Writes the rows of a database to a file, as NDJSON or CSV. */

import { AUDIT_FIELDS } from "../domain/audit.ts";
import { columnOf } from "../domain/fields.ts";
import { KEY_FIELDS } from "../domain/key-fields.ts";
import { OPERATOR_ORDER_FIELDS, PET_FIELDS } from "../domain/pets-and-orders.ts";
import { yieldToEventLoop } from "../runtime/scheduler.ts";
import { API_KEYS, AUDIT, ORDERS, PETS, type Row, type Table } from "../store/sql/tables.ts";
import type { TableReader } from "../store/sql/table-store.ts";
import type { Output } from "./files.ts";
import { ENCODERS, type ExportFormat, type LocatedField, spreadsheetCell } from "./row-encoders.ts";
import { type FileFields, fileFieldsOf } from "./file-fields.ts";

interface Exported {
  /** The fields in the order of the output. */
  readonly fields: FileFields;
  /** The columns of the rows. A field has the name of its column in camel case. */
  readonly columns: readonly string[];
  rows(reader: TableReader): AsyncIterable<readonly Row[]>;
}

/** Describes the rows of a table. */
function exportOf<Column extends string>(table: Table<Column>, fields: FileFields): Exported {
  return { fields, columns: Object.keys(table.columns), rows: (reader) => reader.rows(table) };
}

const EXPORTED = {
  pets: exportOf(PETS, fileFieldsOf(PET_FIELDS)),
  orders: exportOf(ORDERS, fileFieldsOf(OPERATOR_ORDER_FIELDS)),
  keys: exportOf(API_KEYS, fileFieldsOf(KEY_FIELDS)),
  audit: exportOf(AUDIT, fileFieldsOf(AUDIT_FIELDS)),
} as const satisfies Record<string, Exported>;

export type ExportKind = keyof typeof EXPORTED;
export const EXPORT_KINDS: readonly ExportKind[] = ["pets", "orders", "keys", "audit"];

interface ExportOptions {
  readonly reader: TableReader;
  readonly kind: ExportKind;
  readonly format: ExportFormat;
  /** Whether to escape the cells of CSV that look like formulas. */
  readonly forSpreadsheets?: boolean;
  readonly isGzip: boolean;
  readonly output: Output;
  readonly onProgress: (rows: number) => void;
  /** Whether to stop without completing the output. */
  readonly isStopped: () => boolean;
}

/** The length of a piece of output, which bounds the memory. */
const PIECE_LENGTH = 64 * 1024;
/** The length of a piece of gzip. Each piece is compressed separately, at this length as well as the whole would be. */
const GZIP_PIECE_LENGTH = 1024 * 1024;

/** Writes the rows. Returns their number, or undefined if it was stopped. */
export async function exportRows(options: ExportOptions): Promise<number | undefined> {
  const { kind, format, isGzip, output, onProgress, isStopped } = options;
  const exported: Exported = EXPORTED[kind];
  const { header, encoder } = ENCODERS[format];
  const encode = encoder(located(exported), options.forSpreadsheets ? spreadsheetCell : undefined);
  const write = (text: string) => output.write(isGzip ? Bun.gzipSync(text) : text);
  let text = header(Object.keys(exported.fields));
  let count = 0;
  // SQLite never yields to the event loop by itself, so this loop does; otherwise no signal would arrive.
  for await (const rows of exported.rows(options.reader)) {
    await yieldToEventLoop();
    if (isStopped()) return undefined;
    for (const row of rows) text += encode(row);
    count += rows.length;
    if (text.length < (isGzip ? GZIP_PIECE_LENGTH : PIECE_LENGTH)) continue;
    await write(text);
    text = "";
    onProgress(count);
  }
  // An empty file would not be valid gzip.
  if (text !== "" || (count === 0 && isGzip)) await write(text);
  output.finish();
  return count;
}

/** The fields, each with its position in a row. */
function located({ fields, columns }: Exported): LocatedField[] {
  return Object.entries(fields).map(([name, { type, ifMissing }]) => {
    return { name, type, ifMissing, position: columns.indexOf(columnOf(name)) };
  });
}
