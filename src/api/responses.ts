import { headerLine, type Response, type Status } from "../http1/index.ts";
import type { ErrorTable, Rejection } from "./errors.ts";

export type Headers = Readonly<Record<string, string>>;

const CONTENT_TYPE = headerLine("Content-Type", "application/json");

export function headerLinesOf(headers: Headers): string {
  let lines = "";
  for (const name in headers) lines += headerLine(name, headers[name] ?? "");
  return lines;
}

export function jsonResponse(status: Status, headerLines: string, body: string): Response {
  return { status, headerLines: CONTENT_TYPE + headerLines, body };
}

/** A response without a body has no Content-Type. */
export function emptyResponse(status: 204 | 304, headerLines: string): Response {
  return { status, headerLines, body: null };
}

export function errorResponse(errors: ErrorTable, rejection: Rejection, headerLines = ""): Response {
  return jsonResponse(statusOf(errors, rejection), headerLines, errorBody(errors, rejection));
}

export function errorBody(errors: ErrorTable, rejection: Rejection): string {
  const { code, message } = rejection;
  return `{"code":"${code}","message":${JSON.stringify(message)},"status":${statusOf(errors, rejection)}}`;
}

/** A table of errors has statuses that http1 knows. */
function statusOf(errors: ErrorTable, { code }: Rejection): Status {
  return (errors[code]?.status ?? 500) as Status;
}

/** Is never sent: the client disconnected, or already has the response to a malformed body. nginx logs this status. */
export const ABORTED_RESPONSE: Response = { status: 499, headerLines: "", body: null };

/** On every response. `X-Request-Id` of the client is visible ASCII, so it cannot inject a header line. */
export function withRequestId({ status, headerLines, body }: Response, requestId: string): Response {
  return { status, headerLines: `${headerLines}X-Request-Id: ${requestId}\r\n`, body };
}
