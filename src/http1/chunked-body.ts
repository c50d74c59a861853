import { FIELD_LINE, VALUE_CHARACTERS } from "./header-fields.ts";
import type { ReadBuffer } from "./read-buffer.ts";

/** The chunk size in hexadecimal and chunk extensions, which are ignored (RFC 9112, 7.1). */
const SIZE_LINE = new RegExp(`^([0-9A-Fa-f]{1,8})[\\t ]*(?:;[${VALUE_CHARACTERS}]*)?$`);
const TRAILER_LINE = new RegExp(`^${FIELD_LINE}$`);
const MAX_LINE_BYTES = 1_024;
/** Bounds the work that a small body in tiny chunks causes. */
const MAX_LINES = 20_000;

const NO_BYTES = new Uint8Array();

/** Decodes a chunked body. Trailer fields are checked and dropped. */
export class ChunkedBody {
  #expected: "size line" | "data" | "end of data" | "trailer line" = "size line";
  #chunkBytesLeft = 0;
  #lines = 0;

  /** The bytes of the current chunk that are still to come. */
  get chunkBytesLeft(): number {
    return this.#chunkBytesLeft;
  }

  /** Takes the next data bytes of the body; none if more has to arrive first. */
  next(readBuffer: ReadBuffer): Uint8Array | "complete" | "malformed" {
    while (this.#expected !== "data") {
      const line = readBuffer.takeLine(MAX_LINE_BYTES);
      if (line === undefined) return readBuffer.length >= MAX_LINE_BYTES ? "malformed" : NO_BYTES;
      if (++this.#lines > MAX_LINES) return "malformed";
      const end = this.#parseLine(line);
      if (end !== undefined) return end;
    }
    const bytes = readBuffer.take(this.#chunkBytesLeft);
    this.#chunkBytesLeft -= bytes.length;
    if (this.#chunkBytesLeft === 0) this.#expected = "end of data";
    return bytes;
  }

  #parseLine(line: string): "complete" | "malformed" | undefined {
    switch (this.#expected) {
      case "size line":
        return this.#startChunk(SIZE_LINE.exec(line)?.[1]);
      case "end of data":
        this.#expected = "size line";
        return line === "" ? undefined : "malformed";
      default:
        if (line === "") return "complete";
        return TRAILER_LINE.test(line) ? undefined : "malformed";
    }
  }

  #startChunk(size: string | undefined): "malformed" | undefined {
    if (size === undefined) return "malformed";
    this.#chunkBytesLeft = Number.parseInt(size, 16);
    this.#expected = this.#chunkBytesLeft === 0 ? "trailer line" : "data";
    return undefined;
  }
}
