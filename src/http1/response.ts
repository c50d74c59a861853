/** The connection adds `Date`, `Content-Length` and `Connection`. */
export interface Response {
  readonly status: Status;
  /** Header lines, each with its CRLF; see `headerLine`. */
  readonly headerLines: string;
  /** Null for 204 and 304, which have no body and no `Content-Length`. */
  readonly body: string | Uint8Array | null;
}

const REASON_PHRASES = {
  200: "OK",
  201: "Created",
  204: "No Content",
  302: "Found",
  304: "Not Modified",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  499: "Client Closed Request",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
  505: "HTTP Version Not Supported",
} as const;

export type Status = keyof typeof REASON_PHRASES;

/** For a request that is not valid HTTP/1.1, or arrives too slowly. */
export type ProtocolErrorStatus = 400 | 408 | 414 | 431 | 501 | 505;

const STATUS_LINES = Object.fromEntries(
  Object.entries(REASON_PHRASES).map(([status, phrase]) => [status, `HTTP/1.1 ${status} ${phrase}\r\n`]),
);

function statusLine(status: Status): string {
  return STATUS_LINES[status] as string;
}

const PRINTABLE_ASCII = /^[\t\x20-\x7e]*$/;

/** Throws on a value that could inject another header line. */
export function headerLine(name: string, value: string): string {
  if (!PRINTABLE_ASCII.test(value)) throw new Error(`${name} must be printable ASCII`);
  return `${name}: ${value}\r\n`;
}

interface WriteOptions {
  /** Header lines of the connection. */
  readonly connectionLines: string;
  /** The response to HEAD has the `Content-Length` of the body, but no body (RFC 9110, 9.3.2). */
  readonly isHead: boolean;
}

export function writeResponse(
  writeBuffer: WriteBuffer,
  { status, headerLines, body }: Response,
  { connectionLines, isHead }: WriteOptions,
): void {
  const start = statusLine(status) + headerLines + connectionLines;
  if (body === null) {
    writeBuffer.append(`${start}\r\n`, start.length + 2);
    return;
  }
  const bodyBytes = Buffer.byteLength(body);
  const head = `${start}Content-Length: ${bodyBytes}\r\n\r\n`;
  if (typeof body === "string" && !isHead) {
    writeBuffer.append(head + body, head.length + bodyBytes);
    return;
  }
  writeBuffer.append(head, head.length);
  if (typeof body !== "string" && !isHead) writeBuffer.appendBytes(body);
}

export interface Writable {
  /** Returns how many bytes the socket accepts, or -1 when it is closed. Strings are sent as UTF-8. */
  write(data: string | Uint8Array): number;
}

/** The buffer writes to the socket at this size without waiting for `flush`, so that backpressure shows early. */
const MAX_BUFFERED_BYTES = 64 * 1024;

/** The bytes that a connection has to send. Pipelined responses go out in one write. */
export class WriteBuffer {
  #text = "";
  #textBytes = 0;
  #totalBytes = 0;
  /** What the socket did not accept. */
  #unsent: Uint8Array | undefined;

  constructor(
    private readonly socket: Writable,
    /** Counts the bytes of all buffers. */
    private readonly traffic = { bytesSent: 0 },
  ) {}

  /** Whether there is something to write that the socket has not been offered. */
  get isFilled(): boolean {
    return this.#textBytes > 0;
  }

  get isBlocked(): boolean {
    return this.#unsent !== undefined;
  }

  /** Appended since the connection was opened. */
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
