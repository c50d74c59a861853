const EMPTY = Buffer.alloc(0);
const CR = 0x0d;
const LF = 0x0a;

/** The bytes that a connection has received and not parsed yet. */
export class ReadBuffer {
  #bytes: Buffer = EMPTY;
  #offset = 0;

  get length(): number {
    return this.#bytes.length - this.#offset;
  }

  append(bytes: Buffer): void {
    this.#bytes = this.length === 0 ? bytes : Buffer.concat([this.#bytes.subarray(this.#offset), bytes]);
    this.#offset = 0;
  }

  skipEmptyLines(): void {
    while (this.#isCrlfAt(this.#offset)) this.skip(2);
  }

  /** Takes one line and returns it without its CRLF; undefined if no line ends within `maxBytes`. */
  takeLine(maxBytes: number): string | undefined {
    const last = Math.min(this.#offset + maxBytes, this.#bytes.length) - 1;
    for (let end = this.#offset; end < last; end++) {
      if (!this.#isCrlfAt(end)) continue;
      const line = this.#bytes.toString("latin1", this.#offset, end);
      this.skip(end + 2 - this.#offset);
      return line;
    }
    return undefined;
  }

  /** The first bytes, at most `maxBytes`, one character each. They stay in the buffer. */
  peek(maxBytes: number): string {
    return this.#bytes.toString(
      "latin1",
      this.#offset,
      Math.min(this.#offset + maxBytes, this.#bytes.length),
    );
  }

  take(maxBytes: number): Buffer {
    const taken = this.#bytes.subarray(this.#offset, this.#offset + maxBytes);
    this.skip(taken.length);
    return taken;
  }

  skip(count: number): void {
    this.#offset += count;
    if (this.#offset < this.#bytes.length) return;
    this.#bytes = EMPTY;
    this.#offset = 0;
  }

  #isCrlfAt(index: number): boolean {
    return this.#bytes[index] === CR && this.#bytes[index + 1] === LF;
  }
}
