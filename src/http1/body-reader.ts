import { ChunkedBody } from "./chunked-body.ts";
import { ReadBuffer } from "./read-buffer.ts";

export type BodyProgress = "incomplete" | "complete" | "too large" | "malformed";

/** Reads the body of one request from the buffer as it arrives. */
export class BodyReader {
  readonly #chunkedBody: ChunkedBody | undefined;
  #content = new ReadBuffer();
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
    return this.#content.bytes;
  }

  /** Reads what has arrived. Stops before the body becomes larger than `maxBytes`. */
  read(readBuffer: ReadBuffer, maxBytes: number): BodyProgress {
    return this.#advance(readBuffer, maxBytes, (part) => this.#content.append(part));
  }

  /** Like `read`, but drops the bytes. */
  discard(readBuffer: ReadBuffer, maxBytes: number): BodyProgress {
    this.#content = new ReadBuffer();
    return this.#advance(readBuffer, maxBytes, () => {});
  }

  #advance(readBuffer: ReadBuffer, maxBytes: number, onPart: (part: Buffer) => void): BodyProgress {
    while (this.#progress === "incomplete") {
      if (this.#isLargerThan(maxBytes)) return "too large";
      const part = this.#next(readBuffer);
      if (typeof part === "string") {
        this.#progress = part;
      } else {
        if (part.length === 0) return this.#isLargerThan(maxBytes) ? "too large" : "incomplete";
        this.#bytesRead += part.length;
        onPart(part);
      }
    }
    return this.#progress;
  }

  #isLargerThan(maxBytes: number): boolean {
    const bytesLeft = this.#chunkedBody ? this.#chunkedBody.chunkBytesLeft : this.#bytesLeft;
    return this.#bytesRead + bytesLeft > maxBytes;
  }

  #next(readBuffer: ReadBuffer): Buffer | "complete" | "malformed" {
    if (this.#chunkedBody) return this.#chunkedBody.next(readBuffer);
    if (this.#bytesLeft === 0) return "complete";
    const part = readBuffer.take(this.#bytesLeft);
    this.#bytesLeft -= part.length;
    return part;
  }
}
