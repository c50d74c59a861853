import type { WriteBuffer } from "./write-buffer.ts";

/** An answer as it goes out. The connection adds the date, the length and what becomes of itself. */
export interface Response {
  readonly status: Status;
  /** Header lines, each with its CRLF. */
  readonly lines: string;
  /** Null for those that have none, not even an empty one: 204 and 304. */
  readonly body: string | null;
}

const REASONS = {
  200: "OK",
  201: "Created",
  204: "No Content",
  302: "Found",
  304: "Not Modified",
  400: "Bad Request",
  401: "Unauthorized",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
  505: "HTTP Version Not Supported",
} as const;

export type Status = keyof typeof REASONS;

const STATUS_LINES = Object.fromEntries(
  Object.entries(REASONS).map(([status, reason]) => [status, `HTTP/1.1 ${status} ${reason}\r\n`]),
);

function statusLine(status: Status): string {
  return STATUS_LINES[status] as string;
}

const SOUND_VALUE = /^[\t\x20-\x7e]*$/;

/** One header line. A value that would break out of its line is a fault of ours, and goes nowhere. */
export function headerLine(name: string, value: string): string {
  if (!SOUND_VALUE.test(value)) throw new Error(`${name} must be printable ASCII`);
  return `${name}: ${value}\r\n`;
}

/** Writes the answer out, with `more` header lines. To HEAD it has the length of its body, and not the body. */
export function render(
  { status, lines, body }: Response,
  more: string,
  { into, isHead }: { into: WriteBuffer; isHead: boolean },
): void {
  const head = statusLine(status) + lines + more;
  if (body === null) {
    into.add(`${head}\r\n`, head.length + 2);
    return;
  }
  const bodyBytes = Buffer.byteLength(body);
  const whole = `${head}Content-Length: ${bodyBytes}\r\n\r\n`;
  if (isHead) into.add(whole, whole.length);
  else into.add(whole + body, whole.length + bodyBytes);
}
