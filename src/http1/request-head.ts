import { type Framing, framingOf } from "./framing.ts";
import { HeaderFields, TOKEN_CHARACTERS } from "./header-fields.ts";
import type { ReadBuffer } from "./read-buffer.ts";
import { isMethodAndSpace, parseRequestLine, type RequestLine } from "./request-line.ts";

/** The statuses of requests that are not valid HTTP/1.1, or arrive too slowly. */
export type ProtocolErrorStatus = 400 | 408 | 414 | 431 | 501 | 505;

const CR = 0x0d;

/** The request line and the header fields. */
export interface RequestHead extends RequestLine {
  readonly framing: Framing;
}

/** The length of a request line with its CRLF. RFC 9112, 3, recommends at least 8,000 bytes. */
export const MAX_REQUEST_LINE_BYTES = 8 * 1024;
/** The length of a head with the empty line at its end. */
export const MAX_HEAD_BYTES = 16 * 1024;
/** Most heads are shorter, so the parser need not decode 16 KiB for each of many pipelined requests. */
const TYPICAL_HEAD_BYTES = 1_024;
/** A request line starts with such a character, so a TLS handshake is rejected before the end of a line. */
const TOKEN_CHARACTER = new RegExp(`[${TOKEN_CHARACTERS}]`);

/** The largest header section that is remembered. Without it, 10,000 idle connections could hold 150 KiB each. */
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
 * not parse the same text again. So a GET with 2 header fields takes half the CPU time in http1, and one with 9 takes a
 * third.
 */
export class RequestHeadParser {
  #lastHeaders: ParsedHeaders | undefined;
  /** The parsed part of an incomplete head, whose bytes are still in the buffer. */
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

  /** Continues where it stopped after the last segment, so each byte is searched once. */
  #parseLines(readBuffer: ReadBuffer): RequestHead | ProtocolErrorStatus | undefined {
    for (;;) {
      const lineFeed = readBuffer.indexOfLineFeed(this.#searchedBytes);
      const lineEnd = lineFeed === -1 ? readBuffer.length : lineFeed;
      if (this.#requestLine === undefined && lineEnd >= MAX_REQUEST_LINE_BYTES) {
        return isMethodAndSpace(readBuffer.text(0, MAX_REQUEST_LINE_BYTES)) ? 414 : 400;
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
