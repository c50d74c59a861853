import { type ErrorCode, ERRORS } from "../contract/errors.ts";
import type { Decision } from "../domain/rate-limit.ts";
import { headerLine, type Response, type Status } from "../http1/index.ts";

export type HeaderFields = Readonly<Record<string, string>>;

const JSON_LINE = headerLine("Content-Type", "application/json");

export function headerLinesOf(fields: HeaderFields): string {
  let lines = "";
  for (const name in fields) lines += headerLine(name, fields[name] ?? "");
  return lines;
}

let windowLines = "";
let windowLimit = -1;
let windowResetAt = -1;

/** Every answer under /v1 says where the caller stands. What it says of the window is mostly what it last said. */
export function rateLimitLines({ limit, remaining, resetAt, retryAfter }: Decision): string {
  if (limit !== windowLimit || resetAt !== windowResetAt) {
    windowLines = headerLine("X-RateLimit-Limit", `${limit}`) + headerLine("X-RateLimit-Reset", `${resetAt}`);
    windowLimit = limit;
    windowResetAt = resetAt;
  }
  const lines = `${windowLines}X-RateLimit-Remaining: ${remaining}\r\n`;
  return retryAfter === 0 ? lines : lines + headerLine("Retry-After", `${retryAfter}`);
}

export function jsonResponse(status: Status, lines: string, body: string): Response {
  return { status, headerLines: JSON_LINE + lines, body };
}

/** Without a body, and so without a Content-Type. */
export function emptyResponse(status: 204 | 304, lines: string): Response {
  return { status, headerLines: lines, body: null };
}

export function errorResponse(code: ErrorCode, message: string, lines = ""): Response {
  return jsonResponse(ERRORS[code].status, lines, errorBody(code, message));
}

/** Not now: `retryAfter` seconds later it may work. */
export function unavailableResponse(message: string, lines = "", retryAfter = 1): Response {
  return errorResponse("unavailable", message, lines + headerLine("Retry-After", `${retryAfter}`));
}

/** A fault of ours: the client learns that much and no more. */
export function internalErrorResponse(lines = ""): Response {
  return errorResponse("internal_error", "Something went wrong on our side; it has been logged.", lines);
}

export function errorBody(code: ErrorCode, message: string): string {
  return JSON.stringify({ code, message, status: ERRORS[code].status });
}
