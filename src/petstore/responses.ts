import { type Rejection, Unavailable } from "../api/errors.ts";
import { matchesEtag } from "../api/etag.ts";
import { plural } from "../api/formatting.ts";
import { parseIdentifier } from "../api/json.ts";
import {
  emptyResponse,
  errorBody,
  errorResponse,
  headerLinesOf,
  type Headers,
  jsonResponse,
  unavailableResponse,
} from "../api/dispatch.ts";
import type { AuthFailure } from "../domain/api-keys.ts";
import { CHALLENGE, INVALID_KEY_CHALLENGE } from "../domain/constants.ts";
import type { Decision } from "../domain/rate-limit.ts";
import { headerLine, type Request, type Response } from "../http1/index.ts";
import { docsUrl } from "./documented-settings.ts";
import {
  authenticationUnavailable,
  DISABLED_API_KEY,
  ERRORS,
  INVALID_API_KEY,
  keyBanned,
  MISSING_API_KEY,
  PRODUCTION_API_KEY,
  rateLimited,
  STAGING_API_KEY,
} from "./errors.ts";
import type { Deprecation } from "./operations.ts";

/** A cache may keep a response for its own user, and asks before it uses it again. */
const CACHE_LINE = headerLine("Cache-Control", "private, no-cache");

/** On every response of the API. */
export function apiLines(decision: Decision): string {
  return CACHE_LINE + rateLimitLines(decision);
}

/** On every response that counts against a limit. */
export function rateLimitLines({ limit, remaining, resetAt, retryAfter }: Decision): string {
  const lines = `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Reset: ${resetAt}\r\nX-RateLimit-Remaining: ${remaining}\r\n`;
  return retryAfter === 0 ? lines : `${lines}Retry-After: ${retryAfter}\r\n`;
}

export function rejectionResponse(rejection: Rejection, headerLines: string): Response {
  return errorResponse(ERRORS, rejection, headerLines);
}

export function rateLimitedResponse(decision: Decision): Response {
  const { outcome, retryAfter } = decision;
  const body = outcome === "banned" ? keyBannedBody(retryAfter) : rateLimitedBody(retryAfter);
  return jsonResponse(429, apiLines(decision), body);
}

const rateLimitedBody = retryBody(rateLimited);
const keyBannedBody = retryBody(keyBanned);

/** The bodies of a 429 differ in the seconds only. Writing all of the JSON each time takes 0.3 µs more. */
function retryBody(rejectionOf: (seconds: number) => Rejection): (seconds: number) => string {
  const [start = "", end = ""] = errorBody(ERRORS, rejectionOf(60)).split(plural(60, "second"));
  return (seconds) => start + plural(seconds, "second") + end;
}

const UNAUTHENTICATED = {
  missing_api_key: unauthenticated(CHALLENGE, MISSING_API_KEY),
  invalid_api_key: unauthenticated(INVALID_KEY_CHALLENGE, INVALID_API_KEY),
  disabled_api_key: unauthenticated(INVALID_KEY_CHALLENGE, DISABLED_API_KEY),
  staging_api_key: unauthenticated(INVALID_KEY_CHALLENGE, STAGING_API_KEY),
  production_api_key: unauthenticated(INVALID_KEY_CHALLENGE, PRODUCTION_API_KEY),
};

function unauthenticated(challenge: string, rejection: Rejection) {
  return { challengeLine: headerLine("WWW-Authenticate", challenge), body: errorBody(ERRORS, rejection) };
}

export function authFailureResponse(failure: AuthFailure, decision: Decision): Response {
  if (failure instanceof Unavailable)
    return unavailableResponse(failure.retryAfterSeconds, apiLines(decision), authenticationUnavailable);
  const { challengeLine, body } = UNAUTHENTICATED[failure];
  return jsonResponse(401, challengeLine + apiLines(decision), body);
}

/** The response to a GET, without the headers that depend on the request. */
export interface Representation {
  /** With `ETag`, without the rate limit headers. */
  readonly headerLines: string;
  readonly body: string;
  readonly etag: string;
}

/** 304 if the client has this representation already, 200 otherwise. */
export function conditionalResponse(
  { headers }: Request,
  { headerLines, body, etag }: Representation,
  decision: Decision,
): Response {
  const lines = headerLines + apiLines(decision);
  return matchesEtag(headers.get("if-none-match"), etag)
    ? emptyResponse(304, lines)
    : jsonResponse(200, lines, body);
}

/**
 * `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` to the documentation and to the replacement: the one of this
 * very pet or, where the path has no valid identifier, the list.
 */
export function deprecationLines(deprecation: Deprecation, baseUrl: string): (identifier: string) => string {
  const [start = "", end = ""] = headerLinesOf(deprecationHeaders(deprecation, baseUrl)).split(IDENTIFIER);
  const withoutIdentifier = start.replace(QUERY, "") + end;
  return (identifier) =>
    parseIdentifier(identifier) === undefined ? withoutIdentifier : start + identifier + end;
}

const IDENTIFIER = /\{\w+\}/;
const QUERY = /\?\w+=$/;

/** `{petId}` stands for the identifier. */
export function deprecationHeaders(
  { since, sunset, replacement, list }: Deprecation,
  baseUrl: string,
): Headers {
  const successor = `<${baseUrl}${replacement}>; rel="successor-version", <${baseUrl}${list}>; rel="successor-version"; title="by status"`;
  const documentation = `<${docsUrl(baseUrl)}/deprecation>; rel="deprecation"; type="text/html"`;
  return {
    Deprecation: `@${since.getTime() / 1000}`,
    Sunset: sunset.toUTCString(),
    Link: `${successor}, ${documentation}`,
  };
}
