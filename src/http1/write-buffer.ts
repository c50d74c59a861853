export interface Writable {
  /** Returns how many bytes the socket accepts, or -1 when it is closed. Strings are sent as UTF-8. */
  write(data: string | Uint8Array): number;
}

/** The buffer writes to the socket at this size without waiting for `flush`, so that backpressure shows early. */
const MAX_BUFFERED_BYTES = 64 * 1024;

/** The bytes that a connection has to send. Pipelined responses are sent in one write. */
export class WriteBuffer {
  #text = "";
  #textBytes = 0;
  #totalBytes = 0;
  /** The bytes that the socket did not accept. */
  #unsent: Uint8Array | undefined;

  constructor(
    private readonly socket: Writable,
    /** Counts the bytes of all buffers. */
    private readonly traffic: { bytesSent: number },
  ) {}

  /** Whether there are bytes that were not yet written to the socket. */
  get isFilled(): boolean {
    return this.#textBytes > 0;
  }

  get isBlocked(): boolean {
    return this.#unsent !== undefined;
  }

  /** The bytes appended since the connection was opened. */
  get totalBytes(): number {
    return this.#totalBytes;
  }

  append(text: string, byteLength: number): void {
    this.#text = this.#text === "" ? text : this.#text + text;
    this.#textBytes += byteLength;
    this.#totalBytes += byteLength;
    this.traffic.bytesSent += byteLength;
    if (this.#textBytes > MAX_BUFFERED_BYTES) this.flush();
  }

  appendBytes(bytes: Uint8Array): void {
    this.#totalBytes += bytes.length;
    this.traffic.bytesSent += bytes.length;
    this.flush();
    if (this.#unsent === undefined) {
      const sent = this.socket.write(bytes);
      if (sent >= 0 && sent < bytes.length) this.#unsent = bytes.subarray(sent);
      return;
    }
    this.#unsent = Buffer.concat([this.#unsent, Buffer.from(this.#text), bytes]);
    this.#text = "";
    this.#textBytes = 0;
  }

  /** Writes to the socket, unless it is blocked. */
  flush(): void {
    if (this.#unsent !== undefined || this.#textBytes === 0) return;
    const text = this.#text;
    const sent = this.socket.write(text);
    if (sent >= 0 && sent < this.#textBytes) this.#unsent = Buffer.from(text).subarray(sent);
    this.#text = "";
    this.#textBytes = 0;
  }

  /** Writes again after the socket was blocked. */
  drain(): void {
    if (this.#unsent === undefined) return;
    const sent = this.socket.write(this.#unsent);
    this.#unsent = sent >= 0 && sent < this.#unsent.length ? this.#unsent.subarray(sent) : undefined;
    this.flush();
  }
}
