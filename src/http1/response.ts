import type { WriteBuffer } from "./write-buffer.ts";

/** The response of a handler. The connection adds `Date`, `Content-Length` and `Connection`. */
export interface Response {
  readonly status: Status;
  /** Header lines, each with its CRLF; see `headerLine`. */
  readonly headerLines: string;
  /** Null for 204 and 304, which have no body and no `Content-Length`. */
  readonly body: string | Uint8Array | null;
  /** The error code and the message of the application, for its own use. They are not sent. */
  readonly errorCode?: string;
  readonly errorMessage?: string;
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
  412: "Precondition Failed",
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

/** The header lines of every response: `Date`, to the second, and those of the server's options. */
export class CommonLines {
  #lines = "";
  #second: number | undefined;

  constructor(private readonly own: string) {}

  get current(): string {
    const second = Math.floor(Date.now() / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#lines = `Date: ${new Date(second * 1_000).toUTCString()}\r\n${this.own}`;
    }
    return this.#lines;
  }
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
