import { type ErrorCode, ERRORS, Unavailable } from "../contract/errors.ts";
import type { Limits, Subject, Verdict } from "../domain/limits.ts";
import type { Plans } from "../domain/plans.ts";
import type { Awaitable, Clock, Limiter } from "../domain/ports.ts";
import type { Addresses } from "./addresses.ts";
import type { Caller, Callers, Stranger } from "./callers.ts";
import type { FaultLog } from "./faults.ts";
import type { Operate } from "./operate.ts";
import { errorBody, errorReply, faultReply, type HeaderFields, limitFields } from "./replies.ts";
import type { Route } from "./router.ts";
import { Template } from "./template.ts";

export interface Admission {
  readonly callers: Pick<Callers, "find">;
  readonly limiter: Pick<Limiter, "admit">;
  readonly plans: Plans;
  readonly addresses: Addresses;
  /** The socket's other end. */
  readonly peerOf: (request: Request) => string;
  readonly clock: Clock;
  readonly faults: FaultLog;
}

/** `route` is the path's, if the path exists. */
export type Pipeline = (request: Bun.BunRequest, route: Route | undefined) => Awaitable<Response>;

/**
 * The way of a request under /v1:
 * find the caller → charge the limits → find the operation → read the input → do the work.
 */
export function createPipeline(admission: Admission, operate: Operate): Pipeline {
  const { callers, limiter, faults } = admission;

  return (request, route) => {
    try {
      const caller = callers.find(request.headers.get("authorization"));
      return caller instanceof Promise
        ? caller.then((found) => charge(request, route, found)).catch(fault)
        : charge(request, route, caller);
    } catch (error) {
      return fault(error);
    }
  };

  function charge(
    request: Bun.BunRequest,
    route: Route | undefined,
    caller: Caller | Stranger,
  ): Awaitable<Response> {
    const { subject, limits } = isCaller(caller) ? caller : anonymous(request);
    const verdict = limiter.admit(subject, limits);
    return verdict instanceof Promise
      ? verdict.then((given) => answer(request, route, caller, given)).catch(fault)
      : answer(request, route, caller, verdict);
  }

  /** `operate` answers for its own faults. */
  function answer(
    request: Bun.BunRequest,
    route: Route | undefined,
    caller: Caller | Stranger,
    verdict: Verdict,
  ): Awaitable<Response> {
    if (verdict.outcome !== "admitted") return REFUSED[verdict.outcome](verdict);
    if (!isCaller(caller)) return unknown(caller, verdict);
    return operate(request, route, caller, verdict);
  }

  function anonymous(request: Request): { subject: Subject; limits: Limits } {
    const { addresses, peerOf, plans } = admission;
    const subject = addresses.subjectOf(peerOf(request), () => request.headers.get("x-forwarded-for"));
    return { subject, limits: plans.anonymous };
  }

  function fault(error: unknown): Response {
    faults.report("admission", error);
    const limit = admission.plans.anonymous.perMinute;
    const resetAt = Math.ceil(admission.clock.now() / 1000) + 60;
    const headers = limitFields({ outcome: "limited", limit, remaining: 0, resetAt, retryAfter: 1 });
    return faultReply(headers);
  }
}

function isCaller(caller: Caller | Stranger): caller is Caller {
  return typeof caller === "object" && !(caller instanceof Unavailable);
}

function unknown(stranger: Stranger, verdict: Verdict): Response {
  if (!(stranger instanceof Unavailable)) return UNKNOWN[stranger](verdict);
  const headers = limitFields(verdict, { "Retry-After": `${stranger.retryAfterSeconds}` });
  return errorReply("unavailable", "The API key cannot be checked right now; try again soon.", headers);
}

/** The same words each time, to whoever it may be. */
function error(code: ErrorCode, message: string, fields?: HeaderFields): (verdict: Verdict) => Response {
  const template = new Template(ERRORS[code].status, fields);
  const body = errorBody(code, message);
  return (verdict) => template.reply(body, verdict);
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
