import { type ErrorCode, ERRORS, Unavailable } from "../contract/errors.ts";
import type { Limits, Subject, Verdict } from "../domain/rate-limit.ts";
import type { Plans } from "../domain/plans.ts";
import type { Awaitable, Clock, Limiter } from "../domain/ports.ts";
import type { Incoming } from "../http1/request.ts";
import type { Reply } from "../http1/response.ts";
import type { Addresses } from "../auth/client-address.ts";
import type { Caller, Callers, Stranger } from "../auth/authenticator.ts";
import type { FaultLog } from "./error-log.ts";
import type { Operate } from "./dispatch.ts";
import {
  errorBody,
  faultReply,
  type HeaderFields,
  jsonReply,
  limitLines,
  linesOf,
  unavailableReply,
} from "./responses.ts";
import type { Route } from "./router.ts";

export interface Admission {
  readonly callers: Pick<Callers, "find">;
  readonly limiter: Pick<Limiter, "admit">;
  readonly plans: Plans;
  readonly addresses: Addresses;
  readonly clock: Clock;
  readonly faults: FaultLog;
}

/** `route` is the path's, if the path exists. */
export type Pipeline = (incoming: Incoming, route: Route | undefined) => Awaitable<Reply>;

/**
 * The way of a request under /v1:
 * find the caller → charge the limits → find the operation → read the input → do the work.
 */
export function createPipeline(admission: Admission, operate: Operate): Pipeline {
  const { callers, limiter, faults } = admission;

  return (incoming, route) => {
    try {
      const caller = callers.find(incoming.fields.get("authorization"));
      return caller instanceof Promise
        ? caller.then((found) => charge(incoming, route, found)).catch(fault)
        : charge(incoming, route, caller);
    } catch (error) {
      return fault(error);
    }
  };

  function charge(incoming: Incoming, route: Route | undefined, caller: Caller | Stranger): Awaitable<Reply> {
    const { subject, limits } = isCaller(caller) ? caller : anonymous(incoming);
    const verdict = limiter.admit(subject, limits);
    return verdict instanceof Promise
      ? verdict.then((given) => answer(incoming, route, caller, given)).catch(fault)
      : answer(incoming, route, caller, verdict);
  }

  /** `operate` answers for its own faults. */
  function answer(
    incoming: Incoming,
    route: Route | undefined,
    caller: Caller | Stranger,
    verdict: Verdict,
  ): Awaitable<Reply> {
    if (verdict.outcome !== "admitted") return REFUSED[verdict.outcome](verdict);
    if (!isCaller(caller)) return unknown(caller, verdict);
    return operate(incoming, route, caller, verdict);
  }

  function anonymous(incoming: Incoming): { subject: Subject; limits: Limits } {
    const { addresses, plans } = admission;
    const subject = addresses.subjectOf(incoming.peer, () => incoming.fields.get("x-forwarded-for"));
    return { subject, limits: plans.anonymous };
  }

  function fault(error: unknown): Reply {
    faults.report("admission", error);
    const limit = admission.plans.anonymous.perMinute;
    const resetAt = Math.ceil(admission.clock.now() / 1000) + 60;
    return faultReply(limitLines({ outcome: "limited", limit, remaining: 0, resetAt, retryAfter: 0 }));
  }
}

function isCaller(caller: Caller | Stranger): caller is Caller {
  return typeof caller === "object" && !(caller instanceof Unavailable);
}

function unknown(stranger: Stranger, verdict: Verdict): Reply {
  if (!(stranger instanceof Unavailable)) return UNKNOWN[stranger](verdict);
  const message = "The API key cannot be checked right now; try again soon.";
  return unavailableReply(message, limitLines(verdict), stranger.retryAfterSeconds);
}

/** The same words each time, to whoever it may be. */
function error(code: ErrorCode, message: string, fields: HeaderFields = {}): (verdict: Verdict) => Reply {
  const { status } = ERRORS[code];
  const lines = linesOf(fields);
  const body = errorBody(code, message);
  return (verdict) => jsonReply(status, lines + limitLines(verdict), body);
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
