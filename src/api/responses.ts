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
  rejection,
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

/**
 * Responses to requests that are not valid HTTP or arrive too slowly. They precede authentication, so they have no
 * rate limit headers, and belong to no operation. The connection closes.
 */
export const PROTOCOL_ERRORS = {
  malformed_request: { status: 400, meaning: "The request is not valid HTTP/1.1." },
  request_timeout: { status: 408, meaning: "The request did not arrive in time." },
  uri_too_long: { status: 414, meaning: "The request line is too long." },
  headers_too_large: { status: 431, meaning: "The headers are too large, or there are too many." },
  not_implemented: {
    status: 501,
    meaning: "`Transfer-Encoding` is not `chunked`, or the method is `CONNECT`.",
  },
  http_version_not_supported: { status: 505, meaning: "The HTTP version is not 1.x." },
} as const satisfies ErrorTable;

const MALFORMED_REQUEST = rejection("malformed_request", "The request is not valid HTTP/1.1.");

function requestTimeout(seconds: number): Rejection<"request_timeout"> {
  return rejection("request_timeout", `The request did not arrive within ${plural(seconds, "second")}.`);
}

function uriTooLong(maxBytes: number): Rejection<"uri_too_long"> {
  return rejection("uri_too_long", `The request line must not exceed ${kibibytes(maxBytes)}.`);
}

function headersTooLarge(maxBytes: number, maxHeaders: number): Rejection<"headers_too_large"> {
  const bounds = `${kibibytes(maxBytes)} and ${maxHeaders} headers`;
  return rejection("headers_too_large", `The request line and headers must not exceed ${bounds}.`);
}

const NOT_IMPLEMENTED = rejection(
  "not_implemented",
  "Transfer-Encoding must be chunked. CONNECT is not supported.",
);
const HTTP_VERSION_NOT_SUPPORTED = rejection(
  "http_version_not_supported",
  "The HTTP version is not supported. Use HTTP/1.1.",
);

export type ProtocolErrorCode = keyof typeof PROTOCOL_ERRORS;

const RESPONSES: Readonly<Record<ProtocolErrorStatus, Response>> = {
  400: responseTo(MALFORMED_REQUEST),
  408: responseTo(requestTimeout(REQUEST_TIMEOUT_SECONDS)),
  414: responseTo(uriTooLong(MAX_REQUEST_LINE_BYTES)),
  431: responseTo(headersTooLarge(MAX_HEAD_BYTES, MAX_FIELDS)),
  501: responseTo(NOT_IMPLEMENTED),
  505: responseTo(HTTP_VERSION_NOT_SUPPORTED),
};

function responseTo(rejected: Rejection): Response {
  return errorResponse(PROTOCOL_ERRORS, rejected);
}

export function protocolErrorResponse(status: ProtocolErrorStatus): Response {
  return RESPONSES[status];
}
