import { FIELD, VALUE_CHARACTERS } from "./grammar.ts";
import type { ReadBuffer } from "./read-buffer.ts";

/** Size in hexadecimal, then extensions, which nobody here knows (RFC 9112, 7.1). */
const SIZE_LINE = new RegExp(`^([0-9A-Fa-f]{1,8})[\\t ]*(?:;[${VALUE_CHARACTERS}]*)?$`);
const TRAILER_LINE = new RegExp(`^${FIELD}$`);
const MAX_LINE_BYTES = 1_024;
/** Chunks and trailers: a small body comes in a few, and each costs time. */
const MAX_LINES = 20_000;

const NOTHING = new Uint8Array();

/** A body in chunks. Trailers are read and dropped. */
export class Chunks {
  #awaits: "size" | "data" | "end of data" | "trailer" = "size";
  #left = 0;
  #lines = 0;

  /** How much more there is at least. */
  get left(): number {
    return this.#left;
  }

  /** The next bytes of the body; none when there are not enough to tell. */
  next(readBuffer: ReadBuffer): Uint8Array | "done" | "broken" {
    while (this.#awaits !== "data") {
      const line = readBuffer.line(MAX_LINE_BYTES);
      if (line === undefined) return readBuffer.length >= MAX_LINE_BYTES ? "broken" : NOTHING;
      if (++this.#lines > MAX_LINES) return "broken";
      const end = this.#read(line);
      if (end !== undefined) return end;
    }
    const part = readBuffer.take(this.#left);
    this.#left -= part.length;
    if (this.#left === 0) this.#awaits = "end of data";
    return part;
  }

  #read(line: string): "done" | "broken" | undefined {
    switch (this.#awaits) {
      case "size":
        return this.#begin(SIZE_LINE.exec(line)?.[1]);
      case "end of data":
        this.#awaits = "size";
        return line === "" ? undefined : "broken";
      default:
        if (line === "") return "done";
        return TRAILER_LINE.test(line) ? undefined : "broken";
    }
  }

  #begin(size: string | undefined): "broken" | undefined {
    if (size === undefined) return "broken";
    this.#left = Number.parseInt(size, 16);
    this.#awaits = this.#left === 0 ? "trailer" : "data";
    return undefined;
  }
}
