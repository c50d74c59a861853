const EMPTY = Buffer.alloc(0);
const CR = 0x0d;
const LF = 0x0a;

/** The unparsed bytes with which a connection stops reading. */
export const MAX_READ_AHEAD_BYTES = 64 * 1024;

/**
 * The bytes that a connection has received. Appending takes time in proportion to what is appended, however many
 * segments there are: the buffer is copied only when it grows, and then it doubles.
 */
export class ReadBuffer {
  /** The array has free space after `#end`. */
  #bytes: Buffer = EMPTY;
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** All bytes, valid until more are appended. */
  get bytes(): Buffer {
    return this.#bytes.subarray(this.#start, this.#end);
  }

  append(bytes: Buffer): void {
    if (this.length === 0) {
      this.#bytes = bytes;
      this.#start = 0;
      this.#end = bytes.length;
      return;
    }
    if (this.#end + bytes.length > this.#bytes.length) this.#grow(bytes.length);
    this.#bytes.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  skipEmptyLines(): void {
    while (this.byteAt(0) === CR && this.byteAt(1) === LF) this.skip(2);
  }

  /** Returns undefined if the byte has not arrived. */
  byteAt(index: number): number | undefined {
    return index < this.length ? this.#bytes[this.#start + index] : undefined;
  }

  /** Returns the index of the first LF from `from` on; -1 if there is none. */
  indexOfLineFeed(from: number): number {
    const found = this.#bytes.subarray(this.#start + from, this.#end).indexOf(LF);
    return found === -1 ? -1 : from + found;
  }

  /** Returns the bytes of a range as text, one character each. They stay in the buffer. */
  text(from: number, to: number): string {
    return this.#bytes.toString("latin1", this.#start + from, Math.min(this.#start + to, this.#end));
  }

  take(maxBytes: number): Buffer {
    const taken = this.#bytes.subarray(this.#start, Math.min(this.#start + maxBytes, this.#end));
    this.skip(taken.length);
    return taken;
  }

  skip(count: number): void {
    this.#start += count;
    if (this.#start < this.#end) return;
    this.#bytes = EMPTY;
    this.#start = 0;
    this.#end = 0;
  }

  /** Copies to a new array, because what `take` has returned is a view of the old one. */
  #grow(addedBytes: number): void {
    const grown = Buffer.allocUnsafeSlow(2 * (this.length + addedBytes));
    this.#bytes.copy(grown, 0, this.#start, this.#end);
    this.#bytes = grown;
    this.#end -= this.#start;
    this.#start = 0;
  }
}
