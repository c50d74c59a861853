import { headerLine, type Response, type Status } from "../http1/index.ts";
import type { ErrorTable, Rejection } from "./errors.ts";

export type HeaderValues = Readonly<Record<string, string>>;

const CONTENT_TYPE = headerLine("Content-Type", "application/json");

export function headerLinesOf(headers: HeaderValues): string {
  let lines = "";
  for (const name in headers) lines += headerLine(name, headers[name] ?? "");
  return lines;
}

/** No cache may keep the response. */
export const NO_STORE = headerLine("Cache-Control", "no-store");

/** Every response has these header lines. */
export const SECURITY_HEADER_LINES = headerLine("X-Content-Type-Options", "nosniff");

export function jsonResponse(status: Status, headerLines: string, body: string): Response {
  return { status, headerLines: CONTENT_TYPE + headerLines, body };
}

/** A response without a body has no Content-Type. */
export function emptyResponse(status: Status, headerLines: string): Response {
  return { status, headerLines, body: null };
}

/** `members` are added to the members of the body that every error has. */
export function errorResponse(
  errors: ErrorTable,
  rejection: Rejection,
  { headerLines = "", members = "" } = {},
): Response {
  const { code: errorCode, message, retryAfterSeconds } = rejection;
  // http1 knows every status in a table of errors.
  const status = (errors[errorCode]?.status ?? 500) as Status;
  const body = `{"code":"${errorCode}","message":${JSON.stringify(message)},"status":${status}${members}}`;
  const retryLine = retryAfterSeconds === undefined ? "" : retryAfterLine(retryAfterSeconds);
  return { ...jsonResponse(status, headerLines + retryLine, body), errorCode, errorMessage: message };
}

export function retryAfterLine(seconds: number): string {
  return headerLine("Retry-After", `${seconds}`);
}

/** The result if the client disconnected, or already has the response to a malformed body. nginx logs this status. */
export const ABORTED_RESPONSE: Response = { status: 499, headerLines: "", body: null };
