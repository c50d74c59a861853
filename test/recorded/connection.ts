import { connect, type Socket } from "node:net";

/** For a server that does not respond at all. */
const TIMEOUT_MS = 30_000;

/** A TCP connection to the server. Texts are bytes, one character each. */
export class Connection {
  /** What has come and has not been read. */
  #received = "";
  #isClosed = false;
  #onChange = () => {};

  private constructor(private readonly socket: Socket) {
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error("no response")));
    socket.on("data", (bytes) => {
      this.#received += bytes.toString("latin1");
      this.#onChange();
    });
    socket.on("error", (error) => void (this.#received += `(${error.message})`));
    for (const event of ["end", "close"]) {
      socket.on(event, () => {
        this.#isClosed = true;
        this.#onChange();
      });
    }
  }

  static async open(port: number): Promise<Connection> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).setNoDelay();
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return new Connection(socket);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  write(text: string): void {
    this.socket.write(text, "latin1");
  }

  /** Sends no more. */
  end(): void {
    this.socket.end();
  }

  /** The next response, or what has come of it when the server closes. */
  async response(isHead: boolean): Promise<string> {
    while (!this.#isClosed && lengthOf(this.#received, isHead) > this.#received.length) await this.#change();
    const text = this.#received.slice(0, lengthOf(this.#received, isHead));
    this.#received = this.#received.slice(text.length);
    return text;
  }

  /** What comes until the server closes. */
  async rest(): Promise<string> {
    while (!this.#isClosed) await this.#change();
    return this.#received;
  }

  destroy(): void {
    this.socket.destroy();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => (this.#onChange = resolve));
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
