import { Chunks } from "./chunked-body.ts";
import type { ReadBuffer } from "./read-buffer.ts";

/** `more` is to come; `large` is what nobody wants to hear out. */
export type Progress = "more" | "done" | "large" | "broken";

const MAX_PARTS = 64;

/** The body of one request, taken from the readBuffer as it comes. */
export class Body {
  readonly #chunks: Chunks | undefined;
  #parts: Uint8Array[] = [];
  #left: number;
  #size = 0;
  #progress: Progress = "more";

  /** `length` is of at least one byte, or told by the chunks themselves. */
  constructor(length: number | "chunked") {
    this.#chunks = length === "chunked" ? new Chunks() : undefined;
    this.#left = length === "chunked" ? 0 : length;
  }

  get hasBegun(): boolean {
    return this.#size > 0 || this.#progress !== "more";
  }

  get bytes(): Uint8Array {
    const [first] = this.#parts;
    return this.#parts.length === 1 && first ? first : Buffer.concat(this.#parts);
  }

  /** Takes what has come of it, as long as the whole is no larger than `maxBytes`. */
  gather(readBuffer: ReadBuffer, maxBytes: number): Progress {
    return this.#advance(readBuffer, maxBytes, (part) => this.#keep(part));
  }

  /** Takes what has come of a body that nobody wants, or wants no more. */
  discard(readBuffer: ReadBuffer, maxBytes: number): Progress {
    this.#parts = [];
    return this.#advance(readBuffer, maxBytes, () => {});
  }

  #advance(readBuffer: ReadBuffer, maxBytes: number, onPart: (part: Uint8Array) => void): Progress {
    while (this.#progress === "more") {
      const left = this.#chunks ? this.#chunks.left : this.#left;
      if (this.#size + left > maxBytes) return "large";
      const part = this.#next(readBuffer);
      if (typeof part === "string") {
        this.#progress = part;
      } else {
        if (part.length === 0) return "more";
        this.#size += part.length;
        onPart(part);
      }
    }
    return this.#progress;
  }

  /** Small parts are put together now and then: each by itself takes up more than what is in it. */
  #keep(part: Uint8Array): void {
    this.#parts.push(part);
    if (this.#parts.length === MAX_PARTS) this.#parts = [Buffer.concat(this.#parts)];
  }

  #next(readBuffer: ReadBuffer): Uint8Array | "done" | "broken" {
    if (this.#chunks) return this.#chunks.next(readBuffer);
    if (this.#left === 0) return "done";
    const part = readBuffer.take(this.#left);
    this.#left -= part.length;
    return part;
  }
}
