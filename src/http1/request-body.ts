import { FIELD_LINE, TOKEN_CHARACTERS, VALUE_CHARACTERS } from "./header-fields.ts";
import { ReadBuffer } from "./read-buffer.ts";

export type BodyProgress = "incomplete" | "complete" | "too large" | "malformed";

const TOKEN = `[${TOKEN_CHARACTERS}]+`;
const QUOTED_STRING = `"(?:(?!["\\\\])[${VALUE_CHARACTERS}]|\\\\[${VALUE_CHARACTERS}])*"`;
/** Chunk extensions have to be valid, and are ignored (RFC 9112, 7.1.1). */
const EXTENSION = `[\\t ]*;[\\t ]*${TOKEN}(?:[\\t ]*=[\\t ]*(?:${TOKEN}|${QUOTED_STRING}))?`;
/** The chunk size in hexadecimal (RFC 9112, 7.1). Eight digits are more than any body may have. */
const SIZE_LINE = new RegExp(`^0*([0-9A-Fa-f]{1,8})(?:${EXTENSION})*\\r\\n$`);
const TRAILER_LINE = new RegExp(`^${FIELD_LINE}\\r\\n$`);
const EMPTY_LINE = "\r\n";
/** Stands for a line that is too long, or beyond the maximum of lines. */
const MALFORMED_LINE = "";
const MAX_LINE_BYTES = 1_024;
/** The maximum of lines, which bounds the work for a small body in tiny chunks. */
const MAX_LINES = 20_000;

/** Reads the body of one request from the buffer as it arrives. Trailer fields are checked and dropped. */
export class BodyReader {
  readonly #isChunked: boolean;
  #expected: "data" | "end of data" | "size line" | "trailer line";
  #content = new ReadBuffer();
  /** The bytes left of the body, or of the current chunk. */
  #bytesLeft: number;
  #bytesRead = 0;
  #lines = 0;
  /** The bytes of an incomplete line that were searched for LF. */
  #searchedBytes = 0;
  #progress: BodyProgress = "incomplete";

  /** `length` is at least 1. */
  constructor(length: number | "chunked") {
    this.#isChunked = length === "chunked";
    this.#expected = length === "chunked" ? "size line" : "data";
    this.#bytesLeft = length === "chunked" ? 0 : length;
  }

  get hasStarted(): boolean {
    return this.#bytesRead > 0 || this.#progress !== "incomplete";
  }

  get bytes(): Uint8Array {
    return this.#content.bytes;
  }

  /** Reads and drops the bytes. */
  discard(readBuffer: ReadBuffer, maxBytes: number): BodyProgress {
    const progress = this.read(readBuffer, maxBytes);
    this.#content = new ReadBuffer();
    return progress;
  }

  /** Reads what has arrived. Stops before the body becomes larger than `maxBytes`. */
  read(readBuffer: ReadBuffer, maxBytes: number): BodyProgress {
    while (this.#progress === "incomplete") {
      if (this.#bytesRead + this.#bytesLeft > maxBytes) return "too large";
      const hasRead = this.#expected === "data" ? this.#readData(readBuffer) : this.#readLine(readBuffer);
      if (!hasRead) break;
    }
    return this.#progress;
  }

  #readData(readBuffer: ReadBuffer): boolean {
    const part = readBuffer.take(this.#bytesLeft);
    if (part.length === 0) return false;
    this.#content.append(part);
    this.#bytesRead += part.length;
    this.#bytesLeft -= part.length;
    if (this.#bytesLeft > 0) return true;
    if (this.#isChunked) this.#expected = "end of data";
    else this.#progress = "complete";
    return true;
  }

  #readLine(readBuffer: ReadBuffer): boolean {
    const line = this.#expected === "end of data" ? takeCrlf(readBuffer) : this.#takeLine(readBuffer);
    if (line === undefined) return false;
    if (this.#expected === "size line") this.#startChunk(SIZE_LINE.exec(line)?.[1]);
    else if (this.#expected === "end of data" && line === EMPTY_LINE) this.#expected = "size line";
    else if (this.#expected === "end of data") this.#progress = "malformed";
    else if (line === EMPTY_LINE) this.#progress = "complete";
    else if (!TRAILER_LINE.test(line)) this.#progress = "malformed";
    return true;
  }

  #startChunk(size: string | undefined): void {
    if (size === undefined) this.#progress = "malformed";
    this.#bytesLeft = Number.parseInt(size ?? "0", 16);
    this.#expected = this.#bytesLeft === 0 ? "trailer line" : "data";
  }

  /** Takes a line with its LF. */
  #takeLine(readBuffer: ReadBuffer): string | undefined {
    const lineFeed = readBuffer.indexOfLineFeed(this.#searchedBytes);
    this.#searchedBytes = lineFeed === -1 ? readBuffer.length : 0;
    if (lineFeed === -1 && readBuffer.length < MAX_LINE_BYTES) return undefined;
    this.#lines++;
    if (lineFeed === -1 || lineFeed >= MAX_LINE_BYTES || this.#lines > MAX_LINES) return MALFORMED_LINE;
    const line = readBuffer.text(0, lineFeed + 1);
    readBuffer.skip(line.length);
    return line;
  }
}

/** Takes the CRLF after the data, or what is in its place. */
function takeCrlf(readBuffer: ReadBuffer): string | undefined {
  const text = readBuffer.text(0, EMPTY_LINE.length);
  if (text.length < EMPTY_LINE.length && EMPTY_LINE.startsWith(text)) return undefined;
  readBuffer.skip(text.length);
  return text;
}
