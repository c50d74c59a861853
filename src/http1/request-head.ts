import { HeaderFields, TOKEN_CHARACTERS } from "./header-fields.ts";
import type { ReadBuffer } from "./read-buffer.ts";
import type { ProtocolErrorStatus } from "./response.ts";

/** The request line and the header fields. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly framing: Framing;
}

/** The header fields, and what they mean for the connection. */
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

export const MAX_HEAD_BYTES = 16 * 1024;
/** Most heads are shorter. Looking at so little first keeps it cheap to parse many pipelined requests. */
const TYPICAL_HEAD_BYTES = 1_024;
/** A TLS handshake, or lines that end with LF only: the end of such a head would never arrive. */
const NOT_A_HEAD = new RegExp(`^[^\\r${TOKEN_CHARACTERS}]|^\\r[^\\n]|[^\\r]\\n`);

const METHOD = new RegExp(`^[${TOKEN_CHARACTERS}]+$`);
const TARGET = /^[\x21-\x7e]+$/;
const SCHEME_AND_AUTHORITY = /^https?:\/\/[^/?#]*/i;
const OTHER_VERSION = / HTTP\/\d\.\d$/;
const VERSION_LENGTH = " HTTP/1.1".length;

interface ParsedHeaders {
  readonly text: string;
  readonly isHttp11: boolean;
  readonly framing: Framing | ProtocolErrorStatus;
}

/** HTTP/1.1 requires a `Host` field, so no header fields at all are 400. */
const NO_HEADERS: ParsedHeaders = { text: "", isHttp11: true, framing: 400 };

/** Parses the request heads of one connection. */
export class RequestHeadParser {
  #lastHeaders = NO_HEADERS;

  /** Takes the next head from the buffer; undefined until all of it has arrived. */
  parse(readBuffer: ReadBuffer): RequestHead | ProtocolErrorStatus | undefined {
    // Some clients send an extra CRLF after a body (RFC 9112, 2.2).
    readBuffer.skipEmptyLines();
    if (readBuffer.length === 0) return undefined;
    return (
      this.#parseWithin(TYPICAL_HEAD_BYTES, readBuffer) ??
      this.#parseWithin(MAX_HEAD_BYTES, readBuffer) ??
      errorInIncompleteHead(readBuffer)
    );
  }

  #parseWithin(maxBytes: number, readBuffer: ReadBuffer): RequestHead | ProtocolErrorStatus | undefined {
    const text = readBuffer.peek(maxBytes);
    const end = text.indexOf("\r\n\r\n");
    if (end === -1) return undefined;
    readBuffer.skip(end + 4);
    return this.#parseHead(text.slice(0, end + 2));
  }

  /** `text` is the head without the empty line at its end. */
  #parseHead(text: string): RequestHead | ProtocolErrorStatus {
    const lineEnd = text.indexOf("\r\n");
    const targetEnd = lineEnd - VERSION_LENGTH;
    const isHttp11 = text.startsWith(" HTTP/1.1", targetEnd);
    if (!isHttp11 && !text.startsWith(" HTTP/1.0", targetEnd)) {
      return OTHER_VERSION.test(text.slice(0, lineEnd)) ? 505 : 400;
    }
    const methodEnd = text.indexOf(" ");
    const method = text.slice(0, methodEnd);
    const target = text.slice(methodEnd + 1, targetEnd);
    if (!METHOD.test(method) || !TARGET.test(target)) return 400;
    const framing = this.#parseHeaders(text.slice(lineEnd + 2), isHttp11);
    return typeof framing === "number" ? framing : headOf(method, target, framing);
  }

  #parseHeaders(text: string, isHttp11: boolean): Framing | ProtocolErrorStatus {
    const last = this.#lastHeaders;
    if (last.text === text && last.isHttp11 === isHttp11) return last.framing;
    const framing = framingOf(HeaderFields.parse(text), isHttp11);
    this.#lastHeaders = { text, isHttp11, framing };
    return framing;
  }
}

function errorInIncompleteHead(readBuffer: ReadBuffer): ProtocolErrorStatus | undefined {
  if (readBuffer.length >= MAX_HEAD_BYTES) return 431;
  return NOT_A_HEAD.test(readBuffer.peek(MAX_HEAD_BYTES)) ? 400 : undefined;
}

function headOf(method: string, target: string, framing: Framing): RequestHead | ProtocolErrorStatus {
  const originForm = target.startsWith("/") ? target : originFormOf(target);
  if (originForm === undefined) return 400;
  const mark = originForm.indexOf("?");
  if (mark === -1) return { method, path: originForm, query: "", framing };
  return {
    method,
    path: originForm.slice(0, mark),
    query: withoutFragment(originForm.slice(mark + 1)),
    framing,
  };
}

/** Of a target in absolute form, which proxies send (RFC 9112, 3.2.2). */
function originFormOf(target: string): string | undefined {
  const prefix = SCHEME_AND_AUTHORITY.exec(target)?.[0];
  if (prefix === undefined) return undefined;
  const rest = target.slice(prefix.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

function withoutFragment(query: string): string {
  const mark = query.indexOf("#");
  return mark === -1 ? query : query.slice(0, mark);
}

/** Elements of the list in the `Connection` field (RFC 9110, 7.6.1). */
const CLOSE_TOKEN = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const KEEP_ALIVE_TOKEN = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;

function framingOf(headers: HeaderFields | 400 | 431, isHttp11: boolean): Framing | ProtocolErrorStatus {
  if (typeof headers === "number") return headers;
  const hosts = headers.count("host");
  if (hosts > 1 || (isHttp11 && hosts === 0)) return 400;
  const bodyLength = bodyLengthOf(headers, isHttp11);
  if (bodyLength === undefined) return 400;
  const connection = headers.get("connection") ?? "";
  const hasClose = CLOSE_TOKEN.test(connection);
  const keepAlive = !isHttp11 && !hasClose && KEEP_ALIVE_TOKEN.test(connection);
  const expectsContinue = isHttp11 && headers.get("expect")?.toLowerCase() === "100-continue";
  return { headers, bodyLength, close: hasClose || (!isHttp11 && !keepAlive), keepAlive, expectsContinue };
}

const DIGITS = /^\d+$/;

/** Undefined where two parsers could disagree on the length: that allows request smuggling (RFC 9112, 6.3 and 11.2). */
function bodyLengthOf(headers: HeaderFields, isHttp11: boolean): number | "chunked" | undefined {
  const coding = headers.get("transfer-encoding");
  const length = headers.get("content-length");
  if (coding !== null) {
    return isHttp11 && length === null && coding.toLowerCase() === "chunked" ? "chunked" : undefined;
  }
  if (length === null) return 0;
  return DIGITS.test(length) ? Number(length) : undefined;
}
