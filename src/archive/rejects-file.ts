import { closeSync, fstatSync, ftruncateSync, writeSync } from "node:fs";
import { describeProblems, pathText } from "../api/errors.ts";
import { parseJson } from "../api/json.ts";
import { dirname } from "node:path";
import { disk, openOwnFile, syncDirectory } from "../runtime/own-files.ts";
import type { InputProblem } from "../api/schema.ts";
import { csvRow } from "./row-encoders.ts";
import type { SourceRow } from "./row-reader.ts";

export interface RejectedRow {
  readonly row: SourceRow;
  /** The problems, with the file's own names of the fields. */
  readonly problems: readonly InputProblem[];
}

/** Describes a rejected row, such as `line 12: status must be …`. */
export function describeRejectedRow({ row, problems }: RejectedRow): string {
  return `line ${row.line}: ${describeProblems(problems, (path) => pathText(path) || "the row")}`;
}

/**
 * The format of rejected rows. They are written as they were read, with the error, for an import after a correction.
 */
export interface RejectsFormat {
  /** The delimiter of a CSV file; undefined for NDJSON. */
  readonly delimiter: string | undefined;
  /** The header, for a CSV file. */
  readonly header?: readonly string[];
}

const ERROR = "error";

/**
 * The file of rejected rows. It is created with the first row, and only its owner can read it. Rows are written at a
 * position, because an import that was interrupted writes some of them again. If the file is moved away meanwhile,
 * later rows go to a new file.
 */
export class RejectsFile {
  #descriptor: number | undefined;
  /** The number of bytes that are missing at the beginning of the file. */
  #missingBytes = 0;

  constructor(
    readonly path: string,
    private readonly format: RejectsFormat,
  ) {}

  /** Writes rows at a position, and returns the position after them. */
  write(position: number, rejected: readonly RejectedRow[]): number {
    if (rejected.length === 0) return position;
    const descriptor = (this.#descriptor ??= this.#open(position));
    const lines = rejected.map((each) => `${encodeRejectedRow(each, this.format)}\n`);
    const at = position - this.#missingBytes;
    if (at === 0) lines.unshift(headerOf(this.format));
    const bytes = Buffer.from(lines.join(""));
    for (let written = 0; written < bytes.length;)
      written += writeSync(descriptor, bytes, written, bytes.length - written, at + written);
    return position + bytes.length;
  }

  #open(position: number): number {
    const descriptor = openOwnFile(this.path);
    this.#missingBytes = Math.max(0, position - fstatSync(descriptor).size);
    ftruncateSync(descriptor, position - this.#missingBytes);
    return descriptor;
  }

  /** Closes the file when it is on the disk: the import that counts its rows is durable, too. */
  close(): void {
    if (this.#descriptor === undefined) return;
    disk.sync(this.#descriptor);
    closeSync(this.#descriptor);
    syncDirectory(dirname(this.path));
  }
}

function headerOf({ header, delimiter }: RejectsFormat): string {
  if (header === undefined) return "";
  return `${csvRow([...header.slice(0, ownWidth(header)), ERROR], delimiter)}\n`;
}

/** The number of columns without that of errors, which a file of rejected rows already has. */
function ownWidth(header: readonly string[]): number {
  return header.at(-1) === ERROR ? header.length - 1 : header.length;
}

const EARLIER_ERROR = /^\{\s*"error":"(?:[^"\\]|\\.)*",?/;

/** Encodes a rejected row as one line. */
export function encodeRejectedRow(rejected: RejectedRow, { delimiter, header }: RejectsFormat): string {
  const { row } = rejected;
  const error = describeRejectedRow(rejected);
  if (delimiter !== undefined) {
    const { cells = [], problem } = row;
    const own = problem === undefined ? cells.slice(0, header && ownWidth(header)) : [row.text];
    return csvRow([...own, error], delimiter);
  }
  const text = row.text.replace(EARLIER_ERROR, "{");
  if (!text.startsWith("{") || parseJson(text) === undefined)
    return JSON.stringify({ error, text: row.text });
  const rest = text.slice(1).trimStart();
  return `{"error":${JSON.stringify(error)}${rest.startsWith("}") ? "" : ","}${rest}`;
}
