import { InputError } from "./input-error.ts";

/** One row of a file, before its validation. */
export interface SourceRow {
  /** Where it begins; the first line is 1. */
  readonly line: number;
  /** As it is in the file, without the end of the line. */
  readonly text: string;
  /** Of CSV. */
  readonly cells?: readonly string[];
  /** Why the text is not a row. */
  readonly problem?: string;
}

/** Splits a text that arrives in pieces into rows. */
export interface RowReader {
  /** The rows that are complete. */
  push(text: string): SourceRow[];
  /** The rest, after the last piece. */
  end(): SourceRow[];
}

/** A name of 1,024 escaped surrogate pairs takes 12 KiB. */
const MAX_ROW_LENGTH = 64 * 1024;

/** Bounds the memory. A missing quote or bracket would otherwise make one row of the rest of the file. */
export function checkRowLength(length: number, line: number): void {
  if (length > MAX_ROW_LENGTH) {
    throw new InputError(`line ${line} begins a row of more than 64 KiB; is a quote or a bracket missing?`);
  }
}
