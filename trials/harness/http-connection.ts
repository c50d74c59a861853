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

/** The response that a text begins with, one character for each byte. Undefined if it is not complete, or is none. */
export function parseResponse(text: string, method = "GET"): HttpResponse | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1 || !/^HTTP\/1\.1 \d{3} /.test(text)) return undefined;
  const [statusLine = "", ...lines] = text.slice(0, end).split("\r\n");
  const rawHeaders = lines.map(parseHeader);
  const headers = Object.fromEntries(new Headers(rawHeaders));
  const status = Number(statusLine.split(" ")[1]);
  const isEmpty = method === "HEAD" || status < 200 || status === 204 || status === 304;
  const bytes = end + 4 + (isEmpty ? 0 : Number(headers["content-length"] ?? 0));
  if (text.length < bytes) return undefined;
  const body = Buffer.from(text.slice(end + 4, bytes), "latin1").toString();
  return { status, headers, rawHeaders, body, bytes };
}

function parseHeader(line: string): Header {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}

/** The responses to pipelined requests, without 1xx, and the text after the last complete one. */
export function parseResponses(text: string, methods: readonly string[] = []) {
  const responses: HttpResponse[] = [];
  let rest = text;
  for (;;) {
    const response = parseResponse(rest, methods[responses.length]);
    if (response === undefined) return { responses, rest };
    if (response.status >= 200) responses.push(response);
    rest = rest.slice(response.bytes);
  }
}

/** A connection for any bytes, HTTP or not. Texts have one character for each byte. */
export class RawConnection {
  readonly socket: Socket;
  /** What has come and was not taken. */
  received = "";
  /** Whether the server sends no more. */
  isClosed = false;
  error: Error | undefined;
  #onChange = () => {};

  /** `from` is the address that the server sees, any of 127.0.0.0/8. */
  constructor(port: number, from = "127.0.0.1") {
    const address = { host: "127.0.0.1", port, localAddress: from };
    this.socket = connect({ ...address, allowHalfOpen: true, noDelay: true });
    this.socket.on("data", (bytes) => {
      this.received += bytes.toString("latin1");
      this.#onChange();
    });
    this.socket.on("error", (error) => (this.error = error));
    this.socket.on("end", () => this.socket.end());
    for (const event of ["end", "error", "close"]) {
      this.socket.on(event, () => {
        this.isClosed = true;
        this.#onChange();
      });
    }
  }

  write(text: string): Promise<void> {
    return new Promise((resolve) => this.socket.write(text, "latin1", () => resolve()));
  }

  /** Everything that has come, as soon as it is enough or the server has closed the connection. */
  readonly until = async (isEnough: (text: string) => boolean): Promise<string> => {
    while (!this.isClosed && !isEnough(this.received)) {
      await new Promise<void>((resolve) => (this.#onChange = resolve));
    }
    return this.received;
  };

  /** What comes until the server closes the connection. */
  readonly rest = () => this.until(() => false);

  /** Takes the next response, or what has come of it when the server closes. */
  async response(method?: string): Promise<string> {
    await this.until((text) => parseResponse(text, method) !== undefined);
    const text = this.received.slice(0, parseResponse(this.received, method)?.bytes);
    this.received = this.received.slice(text.length);
    return text;
  }
}

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
    const [pending] = this.#pending;
    const response = pending && parseResponse(this.#received, pending.method);
    if (pending === undefined || response === undefined) return false;
    this.#received = this.#received.slice(response.bytes);
    this.#pending.shift();
    if (response.headers.connection === "close") this.socket.end();
    pending.resolve(response);
    return true;
  }
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
