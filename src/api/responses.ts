import {
  headerLine,
  MAX_FIELDS,
  MAX_HEAD_BYTES,
  MAX_REQUEST_LINE_BYTES,
  type ProtocolErrorStatus,
  REQUEST_TIMEOUT_SECONDS,
  type Response,
  type Status,
} from "../http1/index.ts";
import {
  type ErrorTable,
  INTERNAL_ERROR,
  type Rejection,
  serviceUnavailable,
  STANDARD_ERRORS,
} from "./errors.ts";
import { kibibytes, plural } from "./formatting.ts";

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

export function errorCodeOf({ status, body }: Response): string | undefined {
  return status < 400 || typeof body !== "string" ? undefined : /^\{"code":"(\w+)"/.exec(body)?.[1];
}

export function internalErrorResponse(headerLines = ""): Response {
  return errorResponse(STANDARD_ERRORS, INTERNAL_ERROR, headerLines);
}

export function unavailableResponse(
  retryAfterSeconds: number,
  headerLines = "",
  rejectionOf = serviceUnavailable,
): Response {
  const retryAfter = headerLine("Retry-After", `${retryAfterSeconds}`);
  return errorResponse(STANDARD_ERRORS, rejectionOf(retryAfterSeconds), headerLines + retryAfter);
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

const PROTOCOL_REJECTIONS: Readonly<Record<ProtocolErrorStatus, Rejection & { readonly meaning: string }>> = {
  400: {
    code: "malformed_request",
    meaning: "The request is not valid HTTP/1.1.",
    message: "The request is not valid HTTP/1.1.",
  },
  408: {
    code: "request_timeout",
    meaning: "The request did not arrive in time.",
    message: `The request did not arrive within ${plural(REQUEST_TIMEOUT_SECONDS, "second")}.`,
  },
  414: {
    code: "uri_too_long",
    meaning: "The request line is too long.",
    message: `The request line must not exceed ${kibibytes(MAX_REQUEST_LINE_BYTES)}.`,
  },
  431: {
    code: "headers_too_large",
    meaning: "The headers are too large, or there are too many.",
    message: `The request line and headers must not exceed ${kibibytes(MAX_HEAD_BYTES)} and ${MAX_FIELDS} headers.`,
  },
  501: {
    code: "not_implemented",
    meaning: "`Transfer-Encoding` is not `chunked`, or the method is `CONNECT`.",
    message: "Transfer-Encoding must be chunked. CONNECT is not supported.",
  },
  505: {
    code: "http_version_not_supported",
    meaning: "The HTTP version is not 1.x.",
    message: "The HTTP version is not supported. Use HTTP/1.1.",
  },
};

/**
 * The errors of requests that are not valid HTTP or arrive too slowly. Their responses precede authentication, so they
 * have no rate limit headers, and belong to no operation. The connection closes.
 */
export const PROTOCOL_ERRORS: ErrorTable = Object.fromEntries(
  Object.entries(PROTOCOL_REJECTIONS).map(([status, { code, meaning }]) => [
    code,
    { status: Number(status), meaning },
  ]),
);

export function protocolErrorResponse(status: ProtocolErrorStatus): Response {
  return errorResponse(PROTOCOL_ERRORS, PROTOCOL_REJECTIONS[status]);
}
