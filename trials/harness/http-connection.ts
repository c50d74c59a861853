import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface HttpResponse {
  readonly status: number;
  /** The headers by lower-case name. The values of a repeated name are joined with commas. */
  readonly headers: Readonly<Record<string, string>>;
  /** The headers as they were sent. */
  readonly rawHeaders: Header[];
  readonly body: string;
  /** The number of bytes of head and body. */
  readonly bytes: number;
}

export type Header = [name: string, value: string];

export interface HttpRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: readonly Readonly<Header>[];
  readonly body?: string;
}

/** The server rejected or closed the connection, or did not respond. */
export class NoResponse extends Error {}

const TIMEOUT_MS = 10_000;

/**
 * Parses the response at the beginning of a text, which has one character for each byte. Returns undefined if it is
 * incomplete or invalid.
 */
export function parseResponse(text: string, method = "GET"): HttpResponse | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end === -1 || !/^HTTP\/1\.1 \d{3} /.test(text)) return undefined;
  const [statusLine = "", ...lines] = text.slice(0, end).split("\r\n");
  const rawHeaders = lines.map((line): Header => {
    const [name = "", ...value] = line.split(":");
    return [name, value.join(":").trim()];
  });
  const headers = Object.fromEntries(new Headers(rawHeaders));
  const status = Number(statusLine.split(" ")[1]);
  const isEmpty = method === "HEAD" || status < 200 || status === 204 || status === 304;
  const bytes = end + 4 + (isEmpty ? 0 : Number(headers["content-length"] ?? 0));
  if (text.length < bytes) return undefined;
  const body = Buffer.from(text.slice(end + 4, bytes), "latin1").toString();
  return { status, headers, rawHeaders, body, bytes };
}

/** Parses the responses to pipelined requests, without 1xx, and returns the text after the last complete one. */
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

/** A connection for any bytes, whether HTTP or not. Texts have one character for each byte. */
export class RawConnection {
  readonly socket: Socket;
  /** The text that was received and not taken yet. */
  received = "";
  /** Whether the server has ended its side. */
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

  /** Resolves to the received text once it is enough or the server has closed the connection. */
  readonly until = async (isEnough: (text: string) => boolean): Promise<string> => {
    while (!this.isClosed && !isEnough(this.received)) {
      await new Promise<void>((resolve) => (this.#onChange = resolve));
    }
    return this.received;
  };

  /** Resolves to everything that is received until the server closes the connection. */
  readonly rest = () => this.until(() => false);

  /** Takes the next response, or the part that was received when the server closed the connection. */
  async response(method?: string): Promise<string> {
    await this.until((text) => parseResponse(text, method) !== undefined);
    const text = this.received.slice(0, parseResponse(this.received, method)?.bytes);
    this.received = this.received.slice(text.length);
    return text;
  }
}

/**
 * A connection on which requests may be sent before the responses to earlier ones. `fetch` repeats a request by itself
 * when a keep-alive connection closes, which would hide what tests look for.
 */
export class HttpConnection {
  /** The response to the last request. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(private readonly raw: RawConnection) {}

  /** `from` is the address that the server sees, any of 127.0.0.0/8. */
  static async open(port: number, from?: string): Promise<HttpConnection> {
    const raw = new RawConnection(port, from);
    await once(raw.socket, "connect").catch((error: Error) => {
      throw new NoResponse(error.message);
    });
    return new HttpConnection(raw);
  }

  get isOpen(): boolean {
    return !this.raw.isClosed && this.raw.socket.readyState === "open";
  }

  send({ method = "GET", path, headers = [], body }: HttpRequest): Promise<HttpResponse> {
    const fields = [["Host", "petstore.test"], ...headers].map(([name, value]) => `${name}: ${value}\r\n`);
    const length = body === undefined ? "" : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
    return this.sendText(`${method} ${path} HTTP/1.1\r\n${fields.join("")}${length}\r\n${body ?? ""}`);
  }

  sendText(request: string): Promise<HttpResponse> {
    this.raw.socket.write(request);
    const method = request.slice(0, request.indexOf(" "));
    const response = this.#last.catch(() => {}).then(() => this.#next(method));
    this.#last = response;
    return response;
  }

  close(): void {
    this.raw.socket.destroy();
  }

  async #next(method: string): Promise<HttpResponse> {
    const timer = setTimeout(() => this.raw.socket.destroy(new Error("no response in time")), TIMEOUT_MS);
    const text = await this.raw.response(method);
    clearTimeout(timer);
    const response = parseResponse(text, method);
    if (response === undefined)
      throw new NoResponse(
        this.raw.error?.message ?? `the connection was closed after ${JSON.stringify(text)}`,
      );
    if (response.headers.connection === "close") this.close();
    return response;
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
