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
  readonly clock: Clock;
  readonly faults: FaultLog;
}

/** A request on its way: what the runtime gave us, and the path's operations if the path exists. */
export interface Exchange {
  readonly request: Bun.BunRequest;
  readonly method: string;
  /** The socket's other end. A function, because asking costs and most requests never need it. */
  readonly peer: () => string;
  readonly route: Route | undefined;
}

/**
 * The way of a request under /v1:
 * find the caller → charge the limits → find the operation → read the input → do the work.
 */
export function createPipeline(
  admission: Admission,
  operate: Operate,
): (exchange: Exchange) => Awaitable<Response> {
  const { callers, limiter, faults } = admission;

  return (exchange) => {
    try {
      const caller = callers.find(exchange.request.headers.get("authorization"));
      return caller instanceof Promise
        ? caller.then((found) => charge(exchange, found)).catch(fault)
        : charge(exchange, caller);
    } catch (error) {
      return fault(error);
    }
  };

  function charge(exchange: Exchange, caller: Caller | Stranger): Awaitable<Response> {
    const { subject, limits } = isCaller(caller) ? caller : anonymous(exchange);
    const verdict = limiter.admit(subject, limits);
    return verdict instanceof Promise
      ? verdict.then((given) => answer(exchange, caller, given)).catch(fault)
      : answer(exchange, caller, verdict);
  }

  /** `operate` answers for its own faults. */
  function answer(exchange: Exchange, caller: Caller | Stranger, verdict: Verdict): Awaitable<Response> {
    if (verdict.outcome !== "admitted") return REFUSED[verdict.outcome].reply(verdict);
    if (!isCaller(caller)) return unknown(caller, verdict);
    return operate(exchange, caller, verdict);
  }

  function anonymous({ request, peer }: Exchange): { subject: Subject; limits: Limits } {
    const address = admission.addresses.counted(peer(), () => request.headers.get("x-forwarded-for"));
    return { subject: `address:${address}`, limits: admission.plans.anonymous };
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
  if (!(stranger instanceof Unavailable)) return UNKNOWN[stranger].reply(verdict);
  const headers = limitFields(verdict, { "Retry-After": `${stranger.retryAfterSeconds}` });
  return errorReply("unavailable", "The API key cannot be checked right now; try again soon.", headers);
}

function error(code: ErrorCode, message: string, headers: HeaderFields = {}): Template {
  return new Template(errorBody(code, message), { status: ERRORS[code].status, headers });
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
