import { checkRowLength, type RowReader, type SourceRow } from "./source-row.ts";

const BLANK = /^[ \t\r]*$/;

/** NDJSON: one JSON object on each line. Blank lines are skipped. */
export class JsonLinesReader implements RowReader {
  #rest = "";
  #line = 0;

  push(piece: string): SourceRow[] {
    const text = this.#rest + piece;
    const rows: SourceRow[] = [];
    let start = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      this.#add(rows, text.slice(start, end));
      start = end + 1;
    }
    this.#rest = text.slice(start);
    checkRowLength(this.#rest.length, this.#line + 1);
    return rows;
  }

  end(): SourceRow[] {
    const rows: SourceRow[] = [];
    this.#add(rows, this.#rest);
    return rows;
  }

  #add(rows: SourceRow[], text: string): void {
    const line = ++this.#line;
    if (text.charCodeAt(0) !== BRACE && BLANK.test(text)) return;
    checkRowLength(text.length, line);
    rows.push({ line, text: text.endsWith("\r") ? text.slice(0, -1) : text });
  }
}

const BRACE = 0x7b;
