import { connect, type Socket } from "node:net";

const TIMEOUT_MS = 10_000;

/** A TCP connection to the server. Texts are bytes, one character each. */
export class Connection {
  /** What has come and has not been read. */
  #received = "";
  #isClosed = false;
  #isSilent = false;
  #sentAt = Date.now();
  #receivedAt = 0;
  #onChange = () => {};

  private constructor(private readonly socket: Socket) {
    socket.on("data", (bytes) => {
      this.#received += bytes.toString("latin1");
      this.#change();
    });
    socket.on("end", () => this.#close());
    socket.on("close", () => this.#close());
    socket.on("error", (error) => {
      this.#received += `(${error.message})`;
      this.#close();
    });
  }

  /** One that cannot be opened is closed already. */
  static async open(port: number): Promise<Connection> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).setNoDelay();
    const connection = new Connection(socket);
    const opened = Promise.withResolvers<void>();
    socket.once("connect", opened.resolve).once("close", opened.resolve);
    await opened.promise;
    return connection;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The server has not sent in time what was waited for. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Milliseconds from the last bytes that were sent to the last that came, or to the end. */
  get waitedMs(): number {
    return this.#receivedAt - this.#sentAt;
  }

  write(text: string): void {
    this.#sentAt = Date.now();
    this.socket.write(text, "latin1");
  }

  /** Sends no more. */
  end(): void {
    this.socket.end();
  }

  /** The next response, or what has come of it when the server closes or stays silent. */
  async response(isHead: boolean): Promise<string> {
    await this.#until(() => lengthOf(this.#received, isHead) <= this.#received.length);
    return this.#take(lengthOf(this.#received, isHead));
  }

  /** What comes until the server closes. */
  async rest(): Promise<string> {
    await this.#until(() => false);
    return this.#take(Infinity);
  }

  destroy(): void {
    this.socket.destroy();
  }

  async #until(isEnough: () => boolean): Promise<void> {
    const timer = setTimeout(() => {
      this.#isSilent = true;
      this.#onChange();
    }, TIMEOUT_MS);
    while (!isEnough() && !this.#isClosed && !this.#isSilent) {
      const changed = Promise.withResolvers<void>();
      this.#onChange = changed.resolve;
      await changed.promise;
    }
    clearTimeout(timer);
  }

  #take(length: number): string {
    const text = this.#received.slice(0, length);
    this.#received = this.#received.slice(text.length);
    return text;
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#change();
  }

  #change(): void {
    this.#receivedAt = Date.now();
    this.#onChange();
  }
}

/** Of the response that a text begins with; without end where that cannot be told yet. */
function lengthOf(text: string, isHead: boolean): number {
  const end = text.indexOf("\r\n\r\n") + 4;
  if (end === 3) return Infinity;
  const head = text.slice(0, end);
  if (isHead || /^HTTP\/1\.1 (?:1\d\d|204|304)/.test(head)) return end;
  return end + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
}
