/* How rows are written to files: CSV, also for spreadsheets, or NDJSON. */

import { formatTime } from "../text/formatting.ts";
import type { FieldType, FileField } from "./file-fields.ts";

/** Encodes a row of CSV (RFC 4180) without the end of the line. */
export function csvRow(cells: readonly string[], delimiter = ","): string {
  return cells.map(csvCell).join(delimiter);
}

/** Encodes a cell without changing its text. Programs that guess the delimiter see that none of these is one. */
function csvCell(cell: string): string {
  return /[",;|\t\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/**
 * Matches where a cell begins that a spreadsheet would calculate, at its first character. Such a cell begins with a tab,
 * the end of a line, or one of `= + - @` in any width, also after what is not visible. It can begin within a text: a
 * spreadsheet whose delimiter is a semicolon, a tab or a bar does not see the quotes after a comma.
 */
const FORMULA =
  /^(?=[\t\r\n])|(?:^|(?<=[;\|\t\r\n]))(?=[[\s\p{Cc}\p{Cf}]--[\t\r\n]]*[=+\-@＝＋－＠﹦﹢﹣﹫−])/gv;

/**
 * Adds an apostrophe wherever a spreadsheet would see the beginning of a formula. Spreadsheets would calculate it, which
 * can send data elsewhere.
 */
export function spreadsheetCell(text: string): string {
  return text.replace(FORMULA, "'");
}

export const EXPORT_FORMATS = ["ndjson", "csv"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** A field, and the position of its value in a row of a table. */
export interface LocatedField extends FileField {
  readonly name: string;
  readonly position: number;
}

type Encode = (row: readonly (string | null)[]) => string;

interface Encoder {
  /** The text before the rows. */
  readonly header: (names: readonly string[]) => string;
  /** `textCell` changes texts, as `spreadsheetCell` does. */
  readonly encoder: (fields: readonly LocatedField[], textCell?: (text: string) => string) => Encode;
}

export const ENCODERS: Readonly<Record<ExportFormat, Encoder>> = {
  ndjson: { header: () => "", encoder: (fields) => jsonEncoder(fields) },
  csv: { header: (names) => `${names.join(",")}\n`, encoder: csvEncoder },
};

/** Encodes a row as a line, with its end. */
function csvEncoder(fields: readonly LocatedField[], textCell = (text: string) => text): Encode {
  const valueOf = (value: string | null, type: FieldType) => {
    if (value === null) return "";
    if (type === "integer") return value;
    return type === "time" ? formatTime(Number(value)) : csvCell(textCell(value));
  };
  return (row) => `${fields.map(({ type, position }) => valueOf(row[position] ?? null, type)).join(",")}\n`;
}

/** Encodes a row as a line, with its end. */
function jsonEncoder(fields: readonly LocatedField[]): Encode {
  const labelled = fields.map((field) => ({ ...field, label: `"${field.name}":` }));
  return (row) => {
    let line = "{";
    for (const { label, type, ifMissing, position } of labelled) {
      const value = row[position] ?? null;
      if (value === null && ifMissing === "absent") continue;
      line += (line.length === 1 ? "" : ",") + label + jsonValue(value, type);
    }
    return `${line}}\n`;
  };
}

/** Matches texts that JSON only has to quote. The test takes less time than JSON.stringify. */
const PLAIN = /^[ !#-[\]-~]*$/;

function jsonValue(value: string | null, type: FieldType): string {
  if (value === null) return "null";
  if (type === "integer" || type === "json") return value;
  if (type === "time") return `"${formatTime(Number(value))}"`;
  return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
}
