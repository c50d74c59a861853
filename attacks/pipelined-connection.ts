import { connect, type Socket } from "node:net";

interface Pending {
  resolve(status: number): void;
  reject(reason: Error): void;
}

const TIMEOUT_MS = 10_000;

/** Sends requests without waiting for the responses before them. Not for HEAD, whose responses have no body. */
export class PipelinedConnection {
  readonly #pending: Pending[] = [];
  readonly #socket: Socket;
  #received = "";

  constructor(port: number) {
    this.#socket = connect({ host: "127.0.0.1", port });
    this.#socket.setNoDelay(true);
    this.#socket.setTimeout(TIMEOUT_MS, () => this.#fail(`no response in ${TIMEOUT_MS} ms`));
    this.#socket.on("data", (chunk) => {
      this.#received += chunk.toString("latin1");
      while (this.#readResponse());
    });
    this.#socket.on("error", (error) => this.#fail(error.message));
    this.#socket.on("close", () => this.#fail("the connection was closed"));
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  send(request: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #readResponse(): boolean {
    const end = this.#received.indexOf("\r\n\r\n");
    if (end === -1) return false;
    const head = this.#received.slice(0, end + 2);
    const bytes = end + 4 + Number(/^content-length: (\d+)\r$/im.exec(head)?.[1] ?? 0);
    if (this.#received.length < bytes) return false;
    this.#received = this.#received.slice(bytes);
    this.#pending.shift()?.resolve(Number(head.split(" ")[1]));
    return true;
  }

  #fail(reason: string): void {
    this.#socket.destroy();
    for (const { reject } of this.#pending.splice(0)) reject(new Error(reason));
  }
}
