import { toJson } from "../api/json.ts";
import { errorResponse, headerLinesOf, type Headers } from "../api/responses.ts";
import { headerLine, type Response, type Status } from "../http1/index.ts";
import type { Rejection } from "../api/errors.ts";
import { ADMIN_ERRORS, type AdminErrorCode } from "./contract/errors.ts";

/** On every response of the admin listener but its pages, which need more than nothing. */
const NOTHING_ALLOWED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/** The console's scripts, styles and requests, of this origin only, and nothing inline. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const COMMON = {
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
};
const API_LINES = headerLinesOf({
  ...COMMON,
  "Content-Security-Policy": NOTHING_ALLOWED,
  "Cache-Control": "no-store",
});
/** Pages say themselves how long they can be cached. */
export const PAGE_LINES = headerLinesOf({ ...COMMON, "Content-Security-Policy": PAGE_POLICY });

const JSON_TYPE = headerLine("Content-Type", "application/json");

export function adminResponse(status: Status, body: unknown, headers: Headers = {}): Response {
  return { status, headerLines: JSON_TYPE + API_LINES + headerLinesOf(headers), body: toJson(body) };
}

export function adminJsonText(body: string): Response {
  return { status: 200, headerLines: JSON_TYPE + API_LINES, body };
}

export function adminTextResponse(
  status: Status,
  body: string,
  contentType = "text/plain; charset=utf-8",
): Response {
  return { status, headerLines: headerLine("Content-Type", contentType) + API_LINES, body };
}

export function adminEmptyResponse(headers: Headers = {}): Response {
  return { status: 204, headerLines: API_LINES + headerLinesOf(headers), body: null };
}

export function adminErrorResponse(rejection: Rejection, headers: Headers = {}): Response {
  const { retryAfterSeconds } = rejection;
  const isUnauthenticated = ADMIN_ERRORS[rejection.code as AdminErrorCode].status === 401;
  const lines = headerLinesOf({
    ...(isUnauthenticated && { "WWW-Authenticate": CHALLENGE }),
    ...headers,
    ...(retryAfterSeconds !== undefined && { "Retry-After": String(retryAfterSeconds) }),
  });
  return errorResponse(ADMIN_ERRORS, rejection, API_LINES + lines);
}

const CHALLENGE = 'Bearer realm="petstore admin"';
