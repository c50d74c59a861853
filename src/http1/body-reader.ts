import { ChunkedBody } from "./chunked-body.ts";
import type { ReadBuffer } from "./read-buffer.ts";

export type BodyProgress = "incomplete" | "complete" | "too large" | "malformed";

const MAX_PARTS = 64;

/** Reads the body of one request from the buffer as it arrives. */
export class BodyReader {
  readonly #chunkedBody: ChunkedBody | undefined;
  #parts: Uint8Array[] = [];
  #bytesLeft: number;
  #bytesRead = 0;
  #progress: BodyProgress = "incomplete";

  /** `length` is at least 1. */
  constructor(length: number | "chunked") {
    this.#chunkedBody = length === "chunked" ? new ChunkedBody() : undefined;
    this.#bytesLeft = length === "chunked" ? 0 : length;
  }

  get hasStarted(): boolean {
    return this.#bytesRead > 0 || this.#progress !== "incomplete";
  }

  get bytes(): Uint8Array {
    const [first] = this.#parts;
    return this.#parts.length === 1 && first ? first : Buffer.concat(this.#parts);
  }

  /** Reads what has arrived. Stops before the body becomes larger than `maxBytes`. */
  read(readBuffer: ReadBuffer, maxBytes: number): BodyProgress {
    return this.#advance(readBuffer, maxBytes, (part) => this.#addPart(part));
  }

  /** Like `read`, but drops the bytes. */
  discard(readBuffer: ReadBuffer, maxBytes: number): BodyProgress {
    this.#parts = [];
    return this.#advance(readBuffer, maxBytes, () => {});
  }

  #advance(readBuffer: ReadBuffer, maxBytes: number, onPart: (part: Uint8Array) => void): BodyProgress {
    while (this.#progress === "incomplete") {
      const bytesLeft = this.#chunkedBody ? this.#chunkedBody.chunkBytesLeft : this.#bytesLeft;
      if (this.#bytesRead + bytesLeft > maxBytes) return "too large";
      const part = this.#next(readBuffer);
      if (typeof part === "string") {
        this.#progress = part;
      } else {
        if (part.length === 0) return "incomplete";
        this.#bytesRead += part.length;
        onPart(part);
      }
    }
    return this.#progress;
  }

  /** Joins small parts from time to time, because the object of each one is larger than its bytes. */
  #addPart(part: Uint8Array): void {
    this.#parts.push(part);
    if (this.#parts.length === MAX_PARTS) this.#parts = [Buffer.concat(this.#parts)];
  }

  #next(readBuffer: ReadBuffer): Uint8Array | "complete" | "malformed" {
    if (this.#chunkedBody) return this.#chunkedBody.next(readBuffer);
    if (this.#bytesLeft === 0) return "complete";
    const part = readBuffer.take(this.#bytesLeft);
    this.#bytesLeft -= part.length;
    return part;
  }
}
