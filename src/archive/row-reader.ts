/* How rows are read from files: CSV or NDJSON. */

/** The input as a whole is unreadable, so the import ends. The message names the line if it is known. */
export class InputError extends Error {}

/** One row of a file, before its validation. */
export interface SourceRow {
  /** The line where the row begins; the first line is 1. */
  readonly line: number;
  /** The text of the row as in the file, without the end of the line. */
  readonly text: string;
  /** The cells of a CSV row. */
  readonly cells?: readonly string[] | undefined;
  /** Why the text is not a row. */
  readonly problem?: string | undefined;
}

/** The longest row. A name of 1,024 escaped surrogate pairs takes 12 KiB. */
const MAX_ROW_LENGTH = 64 * 1024;

/** Bounds the memory. Otherwise a missing quote would make the rest of the file one row. */
function checkRowLength(length: number, line: number): void {
  if (length > MAX_ROW_LENGTH) {
    throw new InputError(`line ${line} begins a row of more than 64 KiB; is a quote missing?`);
  }
}

const DELIMITERS = [",", ";", "\t", "|"];

/**
 * Finds the format by the beginning of a file. NDJSON begins with an object and has no delimiter. That of CSV is
 * the one that the first line contains most often outside of quoted cells.
 */
export function delimiterOf(text: string): string | undefined {
  const [line = ""] = text.trimStart().split("\n");
  if (line.startsWith("{")) return undefined;
  if (line.startsWith("["))
    throw new InputError("it is a JSON array; write each of its objects on a line of its own");
  const unquoted = line.replace(/"[^"]*"/g, "");
  const counts = DELIMITERS.map((delimiter) => unquoted.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ",";
}

/** A parsed row: where the next one begins and, for CSV, the cells. */
interface Parsed {
  readonly end: number;
  readonly cells?: readonly string[];
  readonly problem?: string;
}

/**
 * Splits a text that arrives in pieces into rows. Without a delimiter, they are NDJSON, with one object on each line.
 * With a delimiter, they are CSV according to RFC 4180: in a cell that does not begin with a quote, quotes are ordinary
 * characters. Lines end with LF or CRLF. Blank lines are skipped.
 */
export class RowReader {
  #rest = "";
  #line = 1;
  readonly #cell: RegExp;

  constructor(private readonly delimiter: string | undefined) {
    const end = RegExp.escape(delimiter ?? "");
    this.#cell = new RegExp(`(?:"([^"]*(?:""[^"]*)*)"|(?!")([^${end}\\n]*?))(${end}|\\r?\\n)`, "uy");
  }

  /** Adds text, and returns the rows that it completes. */
  push(piece: string): SourceRow[] {
    return this.#read(this.#rest + piece, false);
  }

  /** Returns the remaining rows after the last piece. */
  end(): SourceRow[] {
    const rest = this.#rest;
    return rest === "" ? [] : this.#read(rest.endsWith("\n") ? rest : `${rest}\n`, true);
  }

  #read(text: string, isEnd: boolean): SourceRow[] {
    const rows: SourceRow[] = [];
    let start = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      const parsed = this.#parse(text, start, end) ?? (isEnd ? openQuote(text, start) : undefined);
      if (parsed === undefined) break;
      const { end: next, cells, problem } = parsed;
      const line = this.#line;
      const rowText = textUpTo(next - 1, text, start);
      checkRowLength(rowText.length, line);
      const isBlank = rowText === "" || (this.delimiter === undefined && /^[ \t\r]*$/.test(rowText));
      if (!isBlank) rows.push({ line, text: rowText, cells, problem });
      this.#line += linesIn(rowText) + 1;
      start = next;
    }
    this.#rest = text.slice(start);
    checkRowLength(this.#rest.length, this.#line);
    return rows;
  }

  /** Parses the row at `start`, whose first line ends at `lineEnd`. Returns undefined if the row is incomplete. */
  #parse(text: string, start: number, lineEnd: number): Parsed | undefined {
    const { delimiter } = this;
    if (delimiter === undefined) return { end: lineEnd + 1 };
    const line = textUpTo(lineEnd, text, start);
    if (!line.includes('"')) return { cells: line.split(delimiter), end: lineEnd + 1 };
    const cells: string[] = [];
    for (let at = start; ;) {
      this.#cell.lastIndex = at;
      const found = this.#cell.exec(text);
      if (found === null) return misplacedQuote(text, start, at);
      const [all, quoted, plain = "", end] = found;
      cells.push(quoted?.replaceAll('""', '"') ?? plain);
      at += all.length;
      if (end !== delimiter) return { cells, end: at };
    }
  }
}

/** The text without the end of the line, which is a line feed or a carriage return and a line feed. */
function textUpTo(lineFeed: number, text: string, start: number): string {
  return text.slice(start, text[lineFeed - 1] === "\r" ? lineFeed - 1 : lineFeed);
}

/** Handles text after the closing quote of the cell at `at`. The next row begins on the next line. */
function misplacedQuote(text: string, start: number, at: number): Parsed | undefined {
  const quotedLine = /"[^"]*(?:""[^"]*)*"(?!")[^\n]*\n/y;
  quotedLine.lastIndex = at;
  if (!quotedLine.test(text)) return undefined;
  const end = quotedLine.lastIndex;
  return { cells: [text.slice(start, end - 1)], end, problem: "has text after a closing quote" };
}

function openQuote(text: string, start: number): Parsed {
  return { cells: [text.slice(start)], end: text.length, problem: "has a quote that is not closed" };
}

function linesIn(text: string): number {
  return text.split("\n").length - 1;
}
