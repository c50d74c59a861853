import { isHostAndPort } from "./authority.ts";
import { HeaderFields, TOKEN_CHARACTERS } from "./header-fields.ts";
import type { ReadBuffer } from "./read-buffer.ts";
import { errorInLongRequestLine, parseRequestLine, type RequestLine } from "./request-line.ts";
import type { ProtocolErrorStatus } from "./response.ts";

/** The request line and the header fields. */
export interface RequestHead extends RequestLine {
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

/** With its CRLF. RFC 9112, 3, recommends at least 8,000 bytes. */
export const MAX_REQUEST_LINE_BYTES = 8 * 1024;
/** With the empty line at its end. */
export const MAX_HEAD_BYTES = 16 * 1024;
/** Most heads are shorter: the parser does not decode 16 KiB for each of many pipelined requests. */
const TYPICAL_HEAD_BYTES = 1_024;
/** Nothing else starts a request line: a TLS handshake is rejected before the end of a line arrives. */
const TOKEN_CHARACTER = new RegExp(`[${TOKEN_CHARACTERS}]`);
const CR = 0x0d;

/** Larger header sections are not remembered: 10,000 idle connections would hold 150 KiB each. */
const MAX_REMEMBERED_LENGTH = 2 * 1024;

interface ParsedHeaders {
  readonly text: string;
  readonly isHttp11: boolean;
  readonly framing: Framing | ProtocolErrorStatus;
}

/**
 * Parses the request heads of one connection. The segments in which a head arrives do not change the result.
 *
 * Most clients repeat the header fields of their last request. The parser keeps the last ones with their text, and does
 * not parse the same text again. A GET with 2 header fields then takes 1.9 µs of CPU time in this folder and not 3.4,
 * one with 9 takes 2.1 and not 7.0 (`npx bun bench/http1.ts`); in the whole service a GET takes about 25 µs.
 */
export class RequestHeadParser {
  #lastHeaders: ParsedHeaders | undefined;
  /** What is known of a head that has arrived in part. Its bytes are still in the buffer. */
  #requestLine: RequestLine | undefined;
  #headersStart = 0;
  #lineStart = 0;
  #searchedBytes = 0;

  /** Takes the next head from the buffer; undefined until all of it has arrived. */
  parse(readBuffer: ReadBuffer): RequestHead | ProtocolErrorStatus | undefined {
    if (this.#searchedBytes === 0) {
      // Some clients send an extra CRLF after a body (RFC 9112, 2.2).
      readBuffer.skipEmptyLines();
      if (readBuffer.length === 0) return undefined;
      const text = readBuffer.text(0, TYPICAL_HEAD_BYTES);
      const end = text.indexOf("\r\n\r\n");
      if (end !== -1) return this.#parseText(text, end, readBuffer);
      if (readBuffer.byteAt(0) === CR) return readBuffer.length === 1 ? undefined : 400;
      if (!TOKEN_CHARACTER.test(text.charAt(0))) return 400;
    }
    return this.#parseLines(readBuffer);
  }

  /** `end` is the index of the CRLF CRLF. */
  #parseText(text: string, end: number, readBuffer: ReadBuffer): RequestHead | ProtocolErrorStatus {
    readBuffer.skip(end + 4);
    const lineEnd = text.indexOf("\r\n");
    const requestLine = parseRequestLine(text.slice(0, lineEnd));
    if (typeof requestLine === "number") return requestLine;
    return this.#parseHeaders(requestLine, text.slice(lineEnd + 2, end + 2));
  }

  /** Goes on where it stopped when the last segment had arrived, so each byte is searched once. */
  #parseLines(readBuffer: ReadBuffer): RequestHead | ProtocolErrorStatus | undefined {
    for (;;) {
      const lineFeed = readBuffer.indexOfLineFeed(this.#searchedBytes);
      const lineEnd = lineFeed === -1 ? readBuffer.length : lineFeed;
      if (this.#requestLine === undefined && lineEnd >= MAX_REQUEST_LINE_BYTES) {
        return errorInLongRequestLine(readBuffer.text(0, MAX_REQUEST_LINE_BYTES));
      }
      if (lineEnd >= MAX_HEAD_BYTES) return 431;
      this.#searchedBytes = lineEnd;
      if (lineFeed === -1) return undefined;
      if (readBuffer.byteAt(lineFeed - 1) !== CR) return 400;
      if (this.#requestLine === undefined) {
        const requestLine = parseRequestLine(readBuffer.text(0, lineFeed - 1));
        if (typeof requestLine === "number") return requestLine;
        this.#requestLine = requestLine;
        this.#headersStart = lineFeed + 1;
      } else if (lineFeed - 1 === this.#lineStart) {
        return this.#endOfHead(this.#requestLine, readBuffer);
      }
      this.#lineStart = this.#searchedBytes = lineFeed + 1;
    }
  }

  #endOfHead(requestLine: RequestLine, readBuffer: ReadBuffer): RequestHead | ProtocolErrorStatus {
    const text = readBuffer.text(this.#headersStart, this.#lineStart);
    readBuffer.skip(this.#lineStart + 2);
    this.#requestLine = undefined;
    this.#searchedBytes = 0;
    return this.#parseHeaders(requestLine, text);
  }

  #parseHeaders(requestLine: RequestLine, text: string): RequestHead | ProtocolErrorStatus {
    const framing = this.#framingOf(text, requestLine.isHttp11);
    if (typeof framing === "number") return framing;
    const { method, path, query, isHttp11 } = requestLine;
    return { method, path, query, isHttp11, framing };
  }

  /** Long header fields are not kept in memory. */
  #framingOf(text: string, isHttp11: boolean): Framing | ProtocolErrorStatus {
    const last = this.#lastHeaders;
    if (last?.text === text && last.isHttp11 === isHttp11) return last.framing;
    const framing = framingOf(HeaderFields.parse(text), isHttp11);
    if (text.length <= MAX_REMEMBERED_LENGTH) this.#lastHeaders = { text, isHttp11, framing };
    return framing;
  }

  /** Releases the memory of the last head. */
  forget(): void {
    this.#lastHeaders = undefined;
  }
}

/** Elements of the list in the `Connection` field (RFC 9110, 7.6.1). */
const CLOSE_TOKEN = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const KEEP_ALIVE_TOKEN = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;

function framingOf(headers: HeaderFields | 400 | 431, isHttp11: boolean): Framing | ProtocolErrorStatus {
  if (typeof headers === "number") return headers;
  const host = headers.get("host");
  if (host === null ? isHttp11 : headers.count("host") > 1 || !isHostAndPort(host)) return 400;
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

/** A list of codings in which `chunked`, if it is there at all, comes last and has no parameters (RFC 9112, 6.1). */
const CODING = `(?!chunked[\\t ]*(?:[;,]|$))[${TOKEN_CHARACTERS}]+[\\t ]*(?:;[^,]*)?`;
const CODINGS = new RegExp(`^(?:${CODING},[\\t ]*)*(?:chunked|${CODING})$`, "i");

/** Ambiguous where two parsers could disagree: that allows request smuggling (RFC 9112, 6.3 and 11.2). */
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
