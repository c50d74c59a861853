import { InputError } from "./input-error.ts";
import { checkRowLength, type RowReader, type SourceRow } from "./source-row.ts";

const NEWLINE = 0x0a;
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * A JSON array, element by element. It looks for the ends of the elements only; each element is parsed and validated
 * later, by itself.
 */
export class JsonArrayReader implements RowReader {
  /** What is not done: the beginning of an element. */
  #text = "";
  /** How much of it was looked at. */
  #at = 0;
  #line = 1;
  /** Of the element; 0 before its first character. */
  #elementLine = 0;
  #state: "before" | "within" | "after" = "before";
  /** Brackets and braces that are open within the element. */
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #elements = 0;

  push(piece: string): SourceRow[] {
    const rows: SourceRow[] = [];
    this.#text += piece;
    const text = this.#text;
    let start = 0;
    for (; this.#at < text.length; this.#at++) {
      const code = text.charCodeAt(this.#at);
      if (code === NEWLINE) this.#line++;
      if (this.#isInString) this.#nextInString(code);
      else if (code > 0x20) {
        if (this.#state !== "within") this.#outside(code);
        else if (this.#depth === 0 && (code === COMMA || code === CLOSE_BRACKET)) {
          this.#add(rows, text.slice(start, this.#at), code);
        } else {
          this.#within(code);
          continue;
        }
        start = this.#at + 1;
      }
    }
    // Blanks before an element are not kept.
    if (this.#elementLine === 0) start = this.#at;
    this.#text = text.slice(start);
    this.#at -= start;
    checkRowLength(this.#text.trimStart().length, this.#elementLine || this.#line);
    return rows;
  }

  end(): SourceRow[] {
    if (this.#state === "after") return [];
    throw new InputError(`the file ends within the array (line ${this.#line}); is it complete?`);
  }

  #nextInString(code: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (code === BACKSLASH) this.#isEscaped = true;
    else if (code === QUOTE) this.#isInString = false;
  }

  #outside(code: number): void {
    if (this.#state === "after" || code !== OPEN_BRACKET) {
      throw new InputError(`line ${this.#line} has text after the end of the array`);
    }
    this.#state = "within";
  }

  #within(code: number): void {
    if (this.#elementLine === 0) this.#elementLine = this.#line;
    if (code === QUOTE) this.#isInString = true;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) this.#depth++;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) this.#depth--;
  }

  #add(rows: SourceRow[], element: string, delimiter: number): void {
    const text = element.trim();
    const isLast = delimiter === CLOSE_BRACKET;
    // The array may be empty.
    if (text !== "" || !isLast || this.#elements > 0) {
      const line = this.#elementLine || this.#line;
      checkRowLength(text.length, line);
      rows.push({ line, text });
    }
    this.#elements++;
    this.#elementLine = 0;
    if (isLast) this.#state = "after";
  }
}
