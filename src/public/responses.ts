import type { ErrorTable, Rejection } from "../api/errors.ts";
import { errorResponse } from "../api/responses.ts";
import { type Decision, exhaustedWindow } from "../domain/rate-limit.ts";
import { headerLine, type Request, type Response } from "../http1/index.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { FRONT_ERRORS, keyBanned, rateLimited } from "./errors.ts";

/** A path outside the API, which needs no key. */
export interface StaticRoute {
  /** Whether requests count against the quota of pages of the client's address. */
  readonly isRateLimited: boolean;
  /** Responds to a request. Returns undefined if the path does not exist. */
  respond(request: Request, headerLines: string): Awaitable<Response | undefined>;
  rejectLimited(request: Request, decision: Decision): Response;
}

/** A cache may keep a response for its own user, but must validate it again before each use. */
export const CACHE_CONTROL = "private, no-cache";

/** `WWW-Authenticate` of a 401 response, without and with an API key in the request. */
export const CHALLENGE = 'Bearer realm="petstore"';
export const INVALID_KEY_CHALLENGE = `${CHALLENGE}, error="invalid_token"`;

const CACHE_LINE = headerLine("Cache-Control", CACHE_CONTROL);

/** The header lines of every response of the API. */
export function apiLines(decision: Decision): string {
  return CACHE_LINE + rateLimitLines(decision);
}

/** The header lines of every response that counts against a limit. */
export function rateLimitLines({ limit, remaining, resetAt }: Decision): string {
  return `X-RateLimit-Limit: ${limit}\r\nX-RateLimit-Reset: ${resetAt}\r\nX-RateLimit-Remaining: ${remaining}\r\n`;
}

/** `errors` has the statuses of codes that only handlers reject with. */
export function rejectionResponse(
  rejection: Rejection,
  headerLines: string,
  errors: ErrorTable = FRONT_ERRORS,
): Response {
  const challenge = CHALLENGE_LINES[rejection.code] ?? "";
  return errorResponse(errors, rejection, { headerLines: challenge + headerLines });
}

export function rateLimitedResponse(decision: Decision): Response {
  return rejectionResponse(limitRejection(decision), apiLines(decision));
}

function limitRejection(decision: Decision): Rejection {
  const { outcome, retryAfterSeconds } = decision;
  if (outcome === "banned") return keyBanned(retryAfterSeconds);
  const window = exhaustedWindow(decision);
  return rateLimited(window, decision[window], retryAfterSeconds);
}

/** The header lines of a 401 response, by its code. */
const CHALLENGE_LINES: Readonly<Record<string, string>> = {
  missing_api_key: headerLine("WWW-Authenticate", CHALLENGE),
  invalid_api_key: headerLine("WWW-Authenticate", INVALID_KEY_CHALLENGE),
};
