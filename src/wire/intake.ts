const NOTHING = Buffer.alloc(0);

/** What has come on a connection and has not been read yet. */
export class Intake {
  #bytes: Buffer = NOTHING;
  #at = 0;

  get length(): number {
    return this.#bytes.length - this.#at;
  }

  add(bytes: Buffer): void {
    this.#bytes = this.length === 0 ? bytes : Buffer.concat([this.#bytes.subarray(this.#at), bytes]);
    this.#at = 0;
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
}
