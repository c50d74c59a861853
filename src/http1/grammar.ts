/** What names are made of (RFC 9110, 5.6.2), inside the brackets of a pattern. */
export const TOKEN_CHARACTERS = "!#$%&'*+\\-.^_`|~0-9A-Za-z";
/** What values are made of: no control character but the tab. */
export const VALUE_CHARACTERS = "\\t\\x20-\\x7e\\x80-\\xff";
/** A field, without the CRLF at its end: its name is right before the colon. */
export const FIELD = `[${TOKEN_CHARACTERS}]+:[${VALUE_CHARACTERS}]*`;
