import {
  MAX_FIELDS,
  MAX_HEAD_BYTES,
  MAX_REQUEST_LINE_BYTES,
  type ProtocolErrorStatus,
  RECEIVE_TIMEOUT_SECONDS,
  type Response,
} from "../http1/index.ts";
import { kibibytes, plural } from "../text/formatting.ts";
import { type ErrorTable, Rejection } from "./errors.ts";
import { errorResponse } from "./responses.ts";

const PROTOCOL_REJECTIONS: Readonly<Record<ProtocolErrorStatus, { meaning: string; rejection: Rejection }>> =
  {
    400: {
      meaning: "The request is not valid HTTP/1.1.",
      rejection: new Rejection("malformed_request", "The request is not valid HTTP/1.1."),
    },
    408: {
      meaning: "The request did not arrive in time.",
      rejection: new Rejection(
        "request_timeout",
        `The request did not arrive within ${plural(RECEIVE_TIMEOUT_SECONDS, "second")}.`,
      ),
    },
    414: {
      meaning: "The request line is too long.",
      rejection: new Rejection(
        "uri_too_long",
        `The request line must not exceed ${kibibytes(MAX_REQUEST_LINE_BYTES)}.`,
      ),
    },
    431: {
      meaning: "The headers are too large, or there are too many.",
      rejection: new Rejection(
        "headers_too_large",
        `The request line and headers must not exceed ${kibibytes(MAX_HEAD_BYTES)} and ${MAX_FIELDS} headers.`,
      ),
    },
    501: {
      meaning: "`Transfer-Encoding` is not `chunked`, or the method is `CONNECT`.",
      rejection: new Rejection(
        "not_implemented",
        "Transfer-Encoding must be chunked. CONNECT is not supported.",
      ),
    },
    505: {
      meaning: "The HTTP version is not 1.x.",
      rejection: new Rejection(
        "http_version_not_supported",
        "The HTTP version is not supported. Use HTTP/1.1.",
      ),
    },
  };

/**
 * The errors of requests that are not valid HTTP or arrive too slowly. Their responses precede authentication, so they
 * have no rate limit headers, and belong to no operation. The connection closes.
 */
export const PROTOCOL_ERRORS: ErrorTable = Object.fromEntries(
  Object.entries(PROTOCOL_REJECTIONS).map(([status, { rejection, meaning }]) => [
    rejection.code,
    { status: Number(status), meaning },
  ]),
);

export function protocolErrorResponse(status: ProtocolErrorStatus): Response {
  return errorResponse(PROTOCOL_ERRORS, PROTOCOL_REJECTIONS[status].rejection);
}
