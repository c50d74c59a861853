import { FIELD } from "./grammar.ts";

/**
 * The field lines of a request's head (RFC 9112, 5), each with its CRLF. Names are tokens right before the colon, and
 * values hold no control character but the tab. So nothing is folded, and no CR, LF or NUL stands alone.
 */
const FIELD_LINES = new RegExp(`^(?:${FIELD}\\r\\n)*$`);

/** More than this many say nothing that is wanted here. */
export const MAX_FIELDS = 128;

/** What a request says about itself besides its first line. */
export class HeaderFields {
  private constructor(
    private readonly names: readonly string[],
    private readonly values: readonly string[],
  ) {}

  /** Undefined when the lines are no sound fields. */
  static read(text: string): HeaderFields | undefined {
    if (!FIELD_LINES.test(text)) return undefined;
    const names: string[] = [];
    const values: string[] = [];
    for (let start = 0; start < text.length && names.length <= MAX_FIELDS;) {
      const colon = text.indexOf(":", start);
      const end = text.indexOf("\r\n", colon);
      names.push(text.slice(start, colon).toLowerCase());
      values.push(trimmed(text.slice(colon + 1, end)));
      start = end + 2;
    }
    return new HeaderFields(names, values);
  }

  get areTooMany(): boolean {
    return this.names.length > MAX_FIELDS;
  }

  /** By its name in lower case. What was said more than once is one list (RFC 9110, 5.3). */
  get(name: string): string | null {
    let found: string | null = null;
    for (let i = 0; i < this.names.length; i++) {
      if (this.names[i] !== name) continue;
      found = found === null ? (this.values[i] ?? "") : `${found}, ${this.values[i]}`;
    }
    return found;
  }

  count(name: string): number {
    return this.names.filter((other) => other === name).length;
  }

  /** Whether a list names this, in any case. */
  lists(name: string, element: string): boolean {
    const list = this.get(name);
    return list !== null && list.split(",").some((text) => trimmed(text).toLowerCase() === element);
  }
}

/** Blanks and tabs are the only white space there is in a field; what else `trim` takes away belongs to the value. */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
