import { connect, type Socket } from "node:net";

export interface Answer {
  readonly status: number;
  /** By lower-case name; of a name that comes twice, all values with commas between. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Header = readonly [name: string, value: string];

export interface Asking {
  readonly method?: string;
  readonly path: string;
  readonly headers?: readonly Header[];
  readonly body?: string;
}

/** No answer came: the connection was refused, or closed in place of one. */
export class Unanswered extends Error {}

/**
 * One connection on which requests are sent one after the other. `fetch` would repeat a request by itself when a kept
 * connection closes, and hide what is looked for here.
 */
export class Wire {
  #text = "";
  #waiting: { method: string; resolve(answer: Answer): void; reject(reason: Error): void } | undefined;

  private constructor(private readonly socket: Socket) {
    socket.on("data", (chunk) => {
      this.#text += chunk.toString("latin1");
      this.#read();
    });
    socket.on("error", (error) => this.#fail(error.message));
    socket.on("close", () => this.#fail(`the connection was closed after ${JSON.stringify(this.#text)}`));
  }

  /** `from` is the address that the other side sees, any of 127.0.0.0/8. */
  static open(port: number, from = "127.0.0.1"): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, localAddress: from });
      socket.setNoDelay(true);
      socket.once("connect", () => resolve(new Wire(socket)));
      socket.once("error", (error) => reject(new Unanswered(error.message)));
    });
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && this.socket.readyState === "open";
  }

  send({ method = "GET", path, headers = [], body }: Asking): Promise<Answer> {
    const fields = [["Host", "petstore.test"], ...headers].map(([name, value]) => `${name}: ${value}\r\n`);
    const length = body === undefined ? "" : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    return new Promise((resolve, reject) => {
      this.#waiting = { method, resolve, reject };
      if (!this.isOpen) return this.#fail("the connection was closed before");
      this.socket.write(`${method} ${path} HTTP/1.1\r\n${fields.join("")}${length}\r\n${body ?? ""}`);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  #fail(reason: string): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(new Unanswered(reason));
  }

  #read(): void {
    const end = this.#text.indexOf("\r\n\r\n");
    const waiting = this.#waiting;
    if (end === -1 || waiting === undefined) return;
    const [first = "", ...lines] = this.#text.slice(0, end).split("\r\n");
    const headers = fieldsOf(lines);
    const status = Number(first.split(" ")[1]);
    const isEmpty = waiting.method === "HEAD" || status === 204 || status === 304;
    const length = isEmpty ? 0 : Number(headers["content-length"] ?? 0);
    const body = this.#text.slice(end + 4, end + 4 + length);
    if (body.length < length) return;
    this.#text = this.#text.slice(end + 4 + length);
    this.#waiting = undefined;
    if (headers.connection === "close") this.socket.end();
    waiting.resolve({ status, headers, body });
  }
}

function fieldsOf(lines: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    fields[name] = name in fields ? `${fields[name]}, ${value}` : value;
  }
  return fields;
}

/** A request on a connection of its own. */
export async function askOnce(port: number, asking: Asking, from?: string): Promise<Answer> {
  const wire = await Wire.open(port, from);
  try {
    return await wire.send(asking);
  } finally {
    wire.close();
  }
}
