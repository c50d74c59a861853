import { connect, type Socket } from "node:net";

export interface HttpResponse {
  readonly status: number;
  /** By lower-case name; values of a repeated name are joined with commas. */
  readonly headers: Readonly<Record<string, string>>;
  /** As they were sent. */
  readonly rawHeaders: Header[];
  readonly body: string;
  /** Of head and body. */
  readonly bytes: number;
}

export type Header = [name: string, value: string];

export interface HttpRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: readonly Readonly<Header>[];
  readonly body?: string;
}

/** The connection was rejected, closed or silent. */
export class NoResponse extends Error {}

const TIMEOUT_MS = 10_000;

interface PendingRequest {
  readonly method: string;
  resolve(response: HttpResponse): void;
  reject(reason: Error): void;
}

/**
 * A connection; requests may be sent before the responses to earlier ones. `fetch` repeats a request by itself when a
 * keep-alive connection closes, and would hide what tests look for.
 */
export class HttpConnection {
  #received = "";
  readonly #pending: PendingRequest[] = [];

  private constructor(private readonly socket: Socket) {
    socket.on("data", (chunk) => {
      this.#received += chunk.toString("latin1");
      while (this.#read());
    });
    socket.setTimeout(TIMEOUT_MS, () => this.#fail(`no response in ${TIMEOUT_MS} ms`));
    socket.on("error", (error) => this.#fail(error.message));
    socket.on("close", () => this.#fail(`the connection was closed after ${JSON.stringify(this.#received)}`));
  }

  /** `from` is the address that the server sees, any of 127.0.0.0/8. */
  static open(port: number, from = "127.0.0.1"): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port, localAddress: from });
      socket.setNoDelay(true);
      socket.once("connect", () => resolve(new HttpConnection(socket)));
      socket.once("error", (error) => reject(new NoResponse(error.message)));
    });
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && this.socket.readyState === "open";
  }

  send({ method = "GET", path, headers = [], body }: HttpRequest): Promise<HttpResponse> {
    const fields = [["Host", "petstore.test"], ...headers].map(([name, value]) => `${name}: ${value}\r\n`);
    const length = body === undefined ? "" : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    return this.sendText(`${method} ${path} HTTP/1.1\r\n${fields.join("")}${length}\r\n${body ?? ""}`);
  }

  sendText(request: string): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ method: request.slice(0, request.indexOf(" ")), resolve, reject });
      if (!this.isOpen) return this.#fail("the connection was closed before");
      this.socket.write(request);
    });
  }

  close(): void {
    this.socket.destroy();
  }

  #fail(reason: string): void {
    for (const { reject } of this.#pending.splice(0)) reject(new NoResponse(reason));
  }

  /** Whether there was a complete response. */
  #read(): boolean {
    const end = this.#received.indexOf("\r\n\r\n");
    const [pending] = this.#pending;
    if (end === -1 || pending === undefined) return false;
    const [statusLine = "", ...lines] = this.#received.slice(0, end).split("\r\n");
    const rawHeaders = lines.map(parseHeader);
    const headers = Object.fromEntries(new Headers(rawHeaders));
    const status = Number(statusLine.split(" ")[1]);
    const isEmpty = pending.method === "HEAD" || status === 204 || status === 304;
    const bytes = end + 4 + (isEmpty ? 0 : Number(headers["content-length"] ?? 0));
    if (this.#received.length < bytes) return false;
    const body = Buffer.from(this.#received.slice(end + 4, bytes), "latin1").toString();
    this.#received = this.#received.slice(bytes);
    this.#pending.shift();
    if (headers.connection === "close") this.socket.end();
    pending.resolve({ status, headers, rawHeaders, body, bytes });
    return true;
  }
}

function parseHeader(line: string): Header {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}

/** Sends a request on a connection of its own; text is sent as it is. */
export async function sendOnce(
  port: number,
  request: HttpRequest | string,
  from?: string,
): Promise<HttpResponse> {
  const connection = await HttpConnection.open(port, from);
  try {
    return await (typeof request === "string" ? connection.sendText(request) : connection.send(request));
  } finally {
    connection.close();
  }
}
