const NOTHING = Buffer.alloc(0);
const CR = 0x0d;
const LF = 0x0a;

/** What has come on a connection and has not been read yet. */
export class ReadBuffer {
  #bytes: Buffer = NOTHING;
  #at = 0;

  get length(): number {
    return this.#bytes.length - this.#at;
  }

  add(bytes: Buffer): void {
    this.#bytes = this.length === 0 ? bytes : Buffer.concat([this.#bytes.subarray(this.#at), bytes]);
    this.#at = 0;
  }

  skipEmptyLines(): void {
    while (this.#endsLine(this.#at)) this.skip(2);
  }

  /** Takes a line, without its CRLF; undefined when it does not end within so many bytes. */
  line(maxBytes: number): string | undefined {
    const last = Math.min(this.#at + maxBytes, this.#bytes.length) - 1;
    for (let end = this.#at; end < last; end++) {
      if (!this.#endsLine(end)) continue;
      const line = this.#bytes.toString("latin1", this.#at, end);
      this.skip(end + 2 - this.#at);
      return line;
    }
    return undefined;
  }

  /** The first characters, at most so many, without taking them. */
  peek(max: number): string {
    return this.#bytes.toString("latin1", this.#at, Math.min(this.#at + max, this.#bytes.length));
  }

  skip(count: number): void {
    this.#at += count;
    if (this.#at < this.#bytes.length) return;
    this.#bytes = NOTHING;
    this.#at = 0;
  }

  take(count: number): Buffer {
    const taken = this.#bytes.subarray(this.#at, this.#at + count);
    this.skip(taken.length);
    return taken;
  }

  #endsLine(at: number): boolean {
    return this.#bytes[at] === CR && this.#bytes[at + 1] === LF;
  }
}
