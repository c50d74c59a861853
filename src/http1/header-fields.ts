/** Characters of a token (RFC 9110, 5.6.2), for use inside the brackets of a regular expression. */
export const TOKEN_CHARACTERS = "!#$%&'*+\\-.^_`|~0-9A-Za-z";
/** Characters of a field value (RFC 9110, 5.5): the tab is the only control character. */
export const VALUE_CHARACTERS = "\\t\\x20-\\x7e\\x80-\\xff";
/** A field line without its CRLF (RFC 9112, 5). No whitespace is allowed before the colon (5.1). */
export const FIELD_LINE = `[${TOKEN_CHARACTERS}]+:[${VALUE_CHARACTERS}]*`;

/** Obsolete line folding (RFC 9112, 5.2) and a CR, LF or NUL on its own do not match. */
const FIELD_LINES = new RegExp(`^(?:${FIELD_LINE}\\r\\n)*$`);
export const MAX_FIELDS = 128;

interface Field {
  readonly name: string;
  readonly value: string;
}

/** The header fields of a request, in the order in which the client sent them. */
export class HeaderFields {
  private constructor(private readonly fields: readonly Field[]) {}

  /** Parses field lines, each with its CRLF. Returns 400 if one is malformed, and 431 if there are too many. */
  static parse(text: string): HeaderFields | 400 | 431 {
    if (!FIELD_LINES.test(text)) return 400;
    const fields: Field[] = [];
    for (let start = 0; start < text.length;) {
      if (fields.length === MAX_FIELDS) return 431;
      const colon = text.indexOf(":", start);
      const end = text.indexOf("\r\n", colon);
      fields.push({ name: text.slice(start, colon), value: trimWhitespace(text.slice(colon + 1, end)) });
      start = end + 2;
    }
    return new HeaderFields(fields);
  }

  /** `name` is in lower case. The values of fields with the same name are joined with a comma (RFC 9110, 5.3). */
  get(name: string): string | null {
    let joined: string | null = null;
    for (const field of this.fields) {
      if (!isNamed(field, name)) continue;
      joined = joined === null ? field.value : `${joined}, ${field.value}`;
    }
    return joined;
  }
}

/**
 * Compares without regard to case. The bit 0x20 turns a letter into its lower case, and no other token character into
 * a letter or a hyphen. `toLowerCase` on each name would take as long as the rest of the parsing.
 */
function isNamed({ name }: Field, lowerCaseName: string): boolean {
  if (name.length !== lowerCaseName.length) return false;
  for (let i = 0; i < name.length; i++) {
    if ((name.charCodeAt(i) | 0x20) !== lowerCaseName.charCodeAt(i)) return false;
  }
  return true;
}

/** Removes spaces and tabs. `String.trim` also removes characters that belong to the value, such as U+00A0. */
function trimWhitespace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isWhitespace(text.charCodeAt(start))) start++;
  while (end > start && isWhitespace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
