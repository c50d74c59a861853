import { checkRowLength, type RowReader, type SourceRow } from "./source-row.ts";

/** A row, and where the next one begins. */
interface Parsed {
  readonly cells: readonly string[];
  readonly end: number;
  readonly problem?: string;
}

/**
 * CSV as RFC 4180 has it, with any delimiter. Lines end with LF or CRLF. A quote within a cell that does not begin with
 * one stands for itself. Blank lines are skipped.
 */
export class CsvReader implements RowReader {
  #rest = "";
  #line = 1;

  constructor(private readonly delimiter: string) {}

  push(piece: string): SourceRow[] {
    return this.#read(this.#rest + piece, false);
  }

  end(): SourceRow[] {
    const rest = this.#rest;
    return rest === "" ? [] : this.#read(rest.endsWith("\n") ? rest : `${rest}\n`, true);
  }

  #read(text: string, isEnd: boolean): SourceRow[] {
    const rows: SourceRow[] = [];
    let start = 0;
    let quote = text.indexOf('"');
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      if (quote !== -1 && quote < start) quote = text.indexOf('"', start);
      if (quote === -1 || quote > end) {
        this.#addPlain(rows, text.slice(start, end));
        start = end + 1;
        continue;
      }
      const parsed = this.#parseQuoted(text, start) ?? (isEnd ? openQuote(text, start) : undefined);
      if (parsed === undefined) break;
      this.#addQuoted(rows, text.slice(start, parsed.end), parsed);
      start = parsed.end;
    }
    this.#rest = text.slice(start);
    checkRowLength(this.#rest.length, this.#line);
    return rows;
  }

  #addPlain(rows: SourceRow[], withEnd: string): void {
    const line = this.#line++;
    const text = withEnd.endsWith("\r") ? withEnd.slice(0, -1) : withEnd;
    if (text === "") return;
    checkRowLength(text.length, line);
    rows.push({ line, text, cells: text.split(this.delimiter) });
  }

  #addQuoted(rows: SourceRow[], withEnd: string, { cells, problem }: Parsed): void {
    const line = this.#line;
    this.#line += withEnd.split("\n").length - 1;
    checkRowLength(withEnd.length, line);
    const text = withEnd.replace(/\r?\n$/, "");
    rows.push({ line, text, cells, ...(problem !== undefined && { problem }) });
  }

  /** Undefined if the row is not complete. */
  #parseQuoted(text: string, start: number): Parsed | undefined {
    const cells: string[] = [];
    let at = start;
    for (;;) {
      if (text[at] !== '"') {
        const lineEnd = text.indexOf("\n", at);
        if (lineEnd === -1) return undefined;
        const next = text.indexOf(this.delimiter, at);
        const isLast = next === -1 || next > lineEnd;
        const cell = text.slice(at, isLast ? lineEnd : next);
        cells.push(isLast && cell.endsWith("\r") ? cell.slice(0, -1) : cell);
        if (isLast) return { cells, end: lineEnd + 1 };
        at = next + 1;
        continue;
      }
      const close = closingQuote(text, at + 1);
      if (close === -1) return undefined;
      cells.push(text.slice(at + 1, close).replaceAll('""', '"'));
      const next = text.startsWith("\r\n", close + 1) ? close + 2 : close + 1;
      if (text[next] === "\n") return { cells, end: next + 1 };
      if (text[next] !== this.delimiter) return misplacedQuote(text, start, next);
      at = next + 1;
    }
  }
}

/** The quote that ends a cell: two in a row stand for one. */
function closingQuote(text: string, start: number): number {
  let at = text.indexOf('"', start);
  while (at !== -1 && text[at + 1] === '"') at = text.indexOf('"', at + 2);
  // The next piece may begin with the second of two.
  return at === text.length - 1 ? -1 : at;
}

/** The next row begins on the next line. */
function misplacedQuote(text: string, start: number, at: number): Parsed | undefined {
  const lineEnd = text.indexOf("\n", at);
  if (lineEnd === -1) return undefined;
  return { cells: [text.slice(start, lineEnd)], end: lineEnd + 1, problem: "has text after a closing quote" };
}

function openQuote(text: string, start: number): Parsed {
  return { cells: [text.slice(start)], end: text.length, problem: "has a quote that is not closed" };
}
