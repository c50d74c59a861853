import { type ErrorCode, ERRORS, Unavailable } from "../contract/errors.ts";
import type { Limits, Subject, Decision } from "../domain/rate-limit.ts";
import type { Plans } from "../domain/plans.ts";
import type { Awaitable } from "../domain/awaitable.ts";
import type { Clock, RateLimiter } from "../domain/ports.ts";
import type { Request, Response } from "../http1/index.ts";
import type { Addresses } from "../auth/client-address.ts";
import type { ApiKeyPrincipal, Authenticator, AuthFailure } from "../auth/authenticator.ts";
import type { ErrorLog } from "./error-log.ts";
import type { Operate } from "./dispatch.ts";
import {
  errorBody,
  internalErrorResponse,
  type HeaderFields,
  jsonResponse,
  rateLimitLines,
  headerLinesOf,
  unavailableResponse,
} from "./responses.ts";
import type { Route } from "./router.ts";

export interface Admission {
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly rateLimiter: Pick<RateLimiter, "decide">;
  readonly plans: Plans;
  readonly addresses: Addresses;
  readonly clock: Clock;
  readonly faults: ErrorLog;
}

/** `route` is the path's, if the path exists. */
export type Pipeline = (request: Request, route: Route | undefined) => Awaitable<Response>;

/**
 * The way of a request under /v1:
 * find the caller → charge the limits → find the operation → read the input → do the work.
 */
export function createPipeline(admission: Admission, operate: Operate): Pipeline {
  const { authenticator, rateLimiter, faults } = admission;

  return (request, route) => {
    try {
      const principal = authenticator.authenticate(request.headers.get("authorization"));
      return principal instanceof Promise
        ? principal.then((found) => charge(request, route, found)).catch(fault)
        : charge(request, route, principal);
    } catch (error) {
      return fault(error);
    }
  };

  function charge(
    request: Request,
    route: Route | undefined,
    principal: ApiKeyPrincipal | AuthFailure,
  ): Awaitable<Response> {
    const { subject, limits } = isCaller(principal) ? principal : anonymous(request);
    const decision = rateLimiter.decide(subject, limits);
    return decision instanceof Promise
      ? decision.then((given) => answer(request, route, principal, given)).catch(fault)
      : answer(request, route, principal, decision);
  }

  /** `operate` answers for its own faults. */
  function answer(
    request: Request,
    route: Route | undefined,
    principal: ApiKeyPrincipal | AuthFailure,
    decision: Decision,
  ): Awaitable<Response> {
    if (decision.outcome !== "allowed") return REFUSED[decision.outcome](decision);
    if (!isCaller(principal)) return unknown(principal, decision);
    return operate(request, route, principal, decision);
  }

  function anonymous(request: Request): { subject: Subject; limits: Limits } {
    const { addresses, plans } = admission;
    const subject = addresses.subjectOf(request.remoteAddress, () => request.headers.get("x-forwarded-for"));
    return { subject, limits: plans.anonymous };
  }

  function fault(error: unknown): Response {
    faults.report("admission", error);
    const limit = admission.plans.anonymous.perMinute;
    const resetAt = Math.ceil(admission.clock.now() / 1000) + 60;
    return internalErrorResponse(
      rateLimitLines({ outcome: "limited", limit, remaining: 0, resetAt, retryAfter: 0 }),
    );
  }
}

function isCaller(principal: ApiKeyPrincipal | AuthFailure): principal is ApiKeyPrincipal {
  return typeof principal === "object" && !(principal instanceof Unavailable);
}

function unknown(stranger: AuthFailure, decision: Decision): Response {
  if (!(stranger instanceof Unavailable)) return UNKNOWN[stranger](decision);
  const message = "The API key cannot be checked right now; try again soon.";
  return unavailableResponse(message, rateLimitLines(decision), stranger.retryAfterSeconds);
}

/** The same words each time, to whoever it may be. */
function error(
  code: ErrorCode,
  message: string,
  fields: HeaderFields = {},
): (decision: Decision) => Response {
  const { status } = ERRORS[code];
  const lines = headerLinesOf(fields);
  const body = errorBody(code, message);
  return (decision) => jsonResponse(status, lines + rateLimitLines(decision), body);
}

const REFUSED = {
  limited: error(
    "rate_limited",
    "The limit is used up: X-RateLimit-Limit says which. Wait as many seconds as Retry-After says.",
  ),
  banned: error(
    "key_banned",
    "This key is banned for a while, for requests sent on after a 429. Wait as many seconds as Retry-After says.",
  ),
};

const CHALLENGE = 'Bearer realm="petstore"';
const UNKNOWN = {
  missing_api_key: error("missing_api_key", "Send an API key: Authorization: Bearer <key>.", {
    "WWW-Authenticate": CHALLENGE,
  }),
  invalid_api_key: error(
    "invalid_api_key",
    "This API key is wrong, revoked, expired or of another environment.",
    { "WWW-Authenticate": `${CHALLENGE}, error="invalid_token"` },
  ),
};
