import type { AuthFailure } from "../auth/authenticator.ts";
import { CHALLENGE, INVALID_KEY_CHALLENGE } from "../contract/constants.ts";
import {
  authenticationUnavailable,
  type ErrorCode,
  ERRORS,
  headersTooLarge,
  HTTP_VERSION_NOT_SUPPORTED,
  INTERNAL_ERROR,
  INVALID_API_KEY,
  keyBanned,
  MALFORMED_REQUEST,
  MISSING_API_KEY,
  NOT_IMPLEMENTED,
  PROTOCOL_ERRORS,
  type ProtocolErrorCode,
  rateLimited,
  type Rejection,
  requestTimeout,
  serviceUnavailable,
  Unavailable,
  uriTooLong,
} from "../contract/errors.ts";
import { plural } from "../contract/formatting.ts";
import type { Decision } from "../domain/rate-limit.ts";
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

export type Headers = Readonly<Record<string, string>>;

const CONTENT_TYPE = headerLine("Content-Type", "application/json");

export function headerLinesOf(headers: Headers): string {
  let lines = "";
  for (const name in headers) lines += headerLine(name, headers[name] ?? "");
  return lines;
}

/** On every response of the API. */
export function rateLimitLines({ limit, remaining, resetAt, retryAfter }: Decision): string {
  const lines = `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Reset: ${resetAt}\r\nX-RateLimit-Remaining: ${remaining}\r\n`;
  return retryAfter === 0 ? lines : `${lines}Retry-After: ${retryAfter}\r\n`;
}

export function jsonResponse(status: Status, headerLines: string, body: string): Response {
  return { status, headerLines: CONTENT_TYPE + headerLines, body };
}

/** A response without a body has no Content-Type. */
export function emptyResponse(status: 204 | 304, headerLines: string): Response {
  return { status, headerLines, body: null };
}

/** Is never sent: the client disconnected, or already has the response to a malformed body. nginx logs this status. */
export const ABORTED_RESPONSE: Response = { status: 499, headerLines: "", body: null };

type AnyRejection = Rejection<ErrorCode | ProtocolErrorCode>;

const ALL_ERRORS = { ...ERRORS, ...PROTOCOL_ERRORS };

export function errorResponse(rejection: AnyRejection, headerLines = ""): Response {
  return jsonResponse(ALL_ERRORS[rejection.code].status, headerLines, errorBody(rejection));
}

function errorBody({ code, message }: AnyRejection): string {
  return `{"code":"${code}","message":${JSON.stringify(message)},"status":${ALL_ERRORS[code].status}}`;
}

const PROTOCOL_ERROR_RESPONSES: Readonly<Record<ProtocolErrorStatus, Response>> = {
  400: errorResponse(MALFORMED_REQUEST),
  408: errorResponse(requestTimeout(REQUEST_TIMEOUT_SECONDS)),
  414: errorResponse(uriTooLong(MAX_REQUEST_LINE_BYTES)),
  431: errorResponse(headersTooLarge(MAX_HEAD_BYTES, MAX_FIELDS)),
  501: errorResponse(NOT_IMPLEMENTED),
  505: errorResponse(HTTP_VERSION_NOT_SUPPORTED),
};

export function protocolErrorResponse(status: ProtocolErrorStatus): Response {
  return PROTOCOL_ERROR_RESPONSES[status];
}

export function internalErrorResponse(headerLines = ""): Response {
  return errorResponse(INTERNAL_ERROR, headerLines);
}

export function unavailableResponse(
  retryAfterSeconds: number,
  headerLines = "",
  rejectionOf = serviceUnavailable,
): Response {
  const retryAfter = headerLine("Retry-After", `${retryAfterSeconds}`);
  return errorResponse(rejectionOf(retryAfterSeconds), headerLines + retryAfter);
}

export function rateLimitedResponse(decision: Decision): Response {
  const { outcome, retryAfter } = decision;
  const body = outcome === "banned" ? keyBannedBody(retryAfter) : rateLimitedBody(retryAfter);
  return jsonResponse(429, rateLimitLines(decision), body);
}

const rateLimitedBody = retryBody(rateLimited);
const keyBannedBody = retryBody(keyBanned);

/** The bodies of a 429 differ in the seconds only. Writing all of the JSON each time takes 0.3 µs more. */
function retryBody(rejectionOf: (seconds: number) => Rejection): (seconds: number) => string {
  const [start = "", end = ""] = errorBody(rejectionOf(60)).split(plural(60, "second"));
  return (seconds) => start + plural(seconds, "second") + end;
}

const UNAUTHENTICATED = {
  missing_api_key: {
    challenge: headerLine("WWW-Authenticate", CHALLENGE),
    body: errorBody(MISSING_API_KEY),
  },
  invalid_api_key: {
    challenge: headerLine("WWW-Authenticate", INVALID_KEY_CHALLENGE),
    body: errorBody(INVALID_API_KEY),
  },
};

export function authFailureResponse(failure: AuthFailure, decision: Decision): Response {
  if (failure instanceof Unavailable)
    return unavailableResponse(
      failure.retryAfterSeconds,
      rateLimitLines(decision),
      authenticationUnavailable,
    );
  const { challenge, body } = UNAUTHENTICATED[failure];
  return jsonResponse(401, challenge + rateLimitLines(decision), body);
}

/** On every response. `X-Request-Id` of the client is visible ASCII, so it cannot inject a header line. */
export function withRequestId({ status, headerLines, body }: Response, requestId: string): Response {
  return { status, headerLines: `${headerLines}X-Request-Id: ${requestId}\r\n`, body };
}
