/** The part of a socket that takes what goes out: how many bytes of it, or -1 when it is closed. */
export interface Sink {
  write(data: string | Uint8Array): number;
}

/** More than this is not gathered: what a client does not read is to be noticed. */
const MAX_GATHERED_BYTES = 64 * 1024;

/** What goes out on a connection. Texts are gathered until `flush`, so that answers given together leave together. */
export class WriteBuffer {
  #text = "";
  #textBytes = 0;
  /** What the socket has not taken yet. */
  #unsent: Uint8Array | undefined;

  constructor(private readonly sink: Sink) {}

  get isBlocked(): boolean {
    return this.#unsent !== undefined;
  }

  add(text: string, bytes: number): void {
    this.#text = this.#text === "" ? text : this.#text + text;
    this.#textBytes += bytes;
    if (this.#textBytes > MAX_GATHERED_BYTES) this.flush();
  }

  /** Writes what there is; what the socket does not take waits until it drains. */
  flush(): void {
    if (this.#unsent !== undefined || this.#textBytes === 0) return;
    const text = this.#text;
    const sent = this.sink.write(text);
    if (sent >= 0 && sent < this.#textBytes) this.#unsent = Buffer.from(text).subarray(sent);
    this.#text = "";
    this.#textBytes = 0;
  }

  /** The socket takes more. */
  drain(): void {
    if (this.#unsent === undefined) return;
    const sent = this.sink.write(this.#unsent);
    this.#unsent = sent >= 0 && sent < this.#unsent.length ? this.#unsent.subarray(sent) : undefined;
    this.flush();
  }
}
