import { type HeaderFields, TOKEN_CHARACTERS } from "./header-fields.ts";
import { isHostAndPort } from "./request-line.ts";

/** The header fields, and their meaning for the connection. */
export interface Framing {
  readonly headers: HeaderFields;
  readonly bodyLength: number | "chunked";
  /** Whether the connection closes after the response. */
  readonly close: boolean;
  /** Whether the response says `Connection: keep-alive`, which an HTTP/1.0 client needs (RFC 9112, 9.3). */
  readonly keepAlive: boolean;
  /** Whether the client may wait for 100 Continue before it sends the body (RFC 9110, 10.1.1). */
  readonly expectsContinue: boolean;
}

/** Elements of the list in the `Connection` field (RFC 9110, 7.6.1). */
const CLOSE_TOKEN = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const KEEP_ALIVE_TOKEN = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;

/** Where the body ends, and whether the connection continues after it. */
export function framingOf(headers: HeaderFields | 400 | 431, isHttp11: boolean): Framing | 400 | 431 | 501 {
  if (typeof headers === "number") return headers;
  const host = headers.get("host");
  if (host === null ? isHttp11 : !isHostAndPort(host)) return 400;
  const bodyLength = bodyLengthOf(headers, isHttp11);
  if (bodyLength === "ambiguous") return 400;
  if (bodyLength === "unknown coding") return 501;
  const connection = headers.get("connection") ?? "";
  const hasClose = CLOSE_TOKEN.test(connection);
  const keepAlive = !isHttp11 && !hasClose && KEEP_ALIVE_TOKEN.test(connection);
  const expectsContinue = isHttp11 && headers.get("expect")?.toLowerCase() === "100-continue";
  return { headers, bodyLength, close: hasClose || (!isHttp11 && !keepAlive), keepAlive, expectsContinue };
}

const DIGITS = /^\d+$/;

/** A list of codings in which `chunked` may only be the last one, without parameters (RFC 9112, 6.1). */
const CODING = `(?!chunked[\\t ]*(?:[;,]|$))[${TOKEN_CHARACTERS}]+[\\t ]*(?:;[^,]*)?`;
const CODINGS = new RegExp(`^(?:${CODING},[\\t ]*)*(?:chunked|${CODING})$`, "i");

/** A length is ambiguous if two parsers could disagree, which allows request smuggling (RFC 9112, 6.3 and 11.2). */
function bodyLengthOf(
  headers: HeaderFields,
  isHttp11: boolean,
): number | "chunked" | "ambiguous" | "unknown coding" {
  const coding = headers.get("transfer-encoding");
  const length = headers.get("content-length");
  if (coding !== null) {
    if (!isHttp11 || length !== null) return "ambiguous";
    if (coding.toLowerCase() === "chunked") return "chunked";
    return CODINGS.test(coding) ? "unknown coding" : "ambiguous";
  }
  if (length === null) return 0;
  return DIGITS.test(length) && Number.isSafeInteger(Number(length)) ? Number(length) : "ambiguous";
}
