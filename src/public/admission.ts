import { scheduler } from "../runtime/scheduler.ts";
import { READ_METHODS } from "../api/api.ts";
import { type Rejection, rejectionOf, Unavailable } from "../api/errors.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import { type ApiKeyPrincipal, type AuthFailure, isPrincipal } from "../domain/api-keys.ts";
import type { PolicyInEffect } from "../domain/policy.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { Decision, Limits, Subject } from "../domain/rate-limit.ts";
import type { Request, Response } from "../http1/index.ts";
import type { ErrorLog } from "../observe/error-log.ts";
import type { RequestRecord } from "../observe/request-record.ts";
import { type Awaitable, type Coroutine, waitFor } from "../runtime/awaitable.ts";
import { authenticationUnavailable, READ_ONLY_KEY, UNAUTHENTICATED } from "./errors.ts";
import { apiLines, rateLimitedResponse, rejectionResponse, type StaticRoute } from "./responses.ts";

export interface AdmissionOptions {
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly rateLimiter: Pick<RateLimiter, "decide" | "peek">;
  readonly policy: PolicyInEffect;
  /** Returns a promise if what is cached of keys, limits and pets is too old to be used. `now` is `scheduler.now()`. */
  readonly whenCurrent: (now: number) => Promise<void> | undefined;
  /** Called for each request without a valid key. */
  readonly onUnauthenticated?: (failure: AuthFailure, address: string) => void;
}

/** What a request asks for: an operation, a page, or a path that does not exist. */
type Target = "api" | StaticRoute | undefined;

/** A request to the API, with a valid key and within its limits. */
export interface AdmittedCall {
  readonly principal: ApiKeyPrincipal;
  readonly decision: Decision;
  /** Whether authentication or the rate limiter returned a promise, so that other work ran in between. */
  readonly hasWaited: boolean;
}

/** Called while another process decides, with the decision as far as this one knows. */
type WhileDeciding = (principal: ApiKeyPrincipal, expected: Decision) => void;

/** A request for a page or an unknown path, within the limits of its address. */
interface AdmittedReader {
  readonly principal: undefined;
  readonly decision: Decision;
}

/** Decides which requests are routed: authenticate → decide. */
export class Admission {
  constructor(
    private readonly options: AdmissionOptions,
    private readonly errorLog: ErrorLog,
  ) {}

  /** Returns what is known of a request that is admitted, or the response to one that is not. */
  *admit(
    record: RequestRecord,
    startedAt: number,
    target: Target,
    whileDeciding?: WhileDeciding,
  ): Coroutine<AdmittedCall | AdmittedReader | Response> {
    const { rateLimiter, whenCurrent, onUnauthenticated } = this.options;
    const { request } = record;
    const isCall = target === "api";
    // The spans are those of operations.
    const trace = isCall ? record.trace : undefined;
    try {
      const current = whenCurrent(startedAt);
      if (current) yield current;

      trace?.begin("authentication");
      // The test for a promise is written twice: a helper would make two more coroutines for each request.
      const authenticating = isCall ? this.#authenticate(request) : undefined;
      const authentication =
        authenticating instanceof Promise ? yield* waitFor(authenticating) : authenticating;
      record.authentication = authentication;
      if (authentication !== undefined && !isPrincipal(authentication))
        onUnauthenticated?.(authentication, request.clientAddress);

      trace?.begin("rate limit");
      const { subject, limits } = this.#limited(record, target);
      const deciding = rateLimiter.decide(subject, limits);
      if (deciding instanceof Promise && isPrincipal(authentication))
        whileDeciding?.(authentication, rateLimiter.peek(subject, limits));
      const decision = deciding instanceof Promise ? yield* waitFor(deciding) : deciding;
      record.decision = decision;
      trace?.end();

      if (decision.outcome !== "allowed") return limitedResponse(request, target, decision);
      if (authentication === undefined) return { principal: undefined, decision };
      if (!isPrincipal(authentication))
        return rejectionResponse(this.#rejectionOf(authentication, record), apiLines(decision));
      const hasWaited = authenticating instanceof Promise || deciding instanceof Promise;
      return { principal: authentication, decision, hasWaited };
    } catch (error) {
      this.errorLog.report("authentication or rate limit", error, record);
      // The headers show the last known quota.
      const { subject, limits } = this.#limited(record, target);
      return rejectionResponse(rejectionOf(error), apiLines(rateLimiter.peek(subject, limits)));
    }
  }

  /**
   * Authenticates again after the body has arrived. The request was counted when its head arrived, and still counts for
   * its key.
   */
  async reauthenticate(record: RequestRecord): Promise<ApiKeyPrincipal | Rejection> {
    const { whenCurrent, onUnauthenticated } = this.options;
    const { request } = record;
    await whenCurrent(scheduler.now());
    const authentication = await this.#authenticate(request);
    if (isPrincipal(authentication)) return mayUse(authentication, request) ? authentication : READ_ONLY_KEY;
    onUnauthenticated?.(authentication, request.clientAddress);
    return this.#rejectionOf(authentication, record);
  }

  #authenticate(request: Request): Awaitable<ApiKeyPrincipal | AuthFailure> {
    return this.options.authenticator.authenticate(request.headers.get("authorization"), request);
  }

  /**
   * Returns whom a request counts against, and the limits. A request without a valid key counts against its address.
   * Pages have a quota of their own, so that a program that has exhausted the quota of its address leaves the
   * documentation readable for people. An unknown path is no page.
   */
  #limited({ authentication, request }: RequestRecord, target: Target): { subject: Subject; limits: Limits } {
    if (isPrincipal(authentication))
      return { subject: { kind: "key", id: authentication.keyId }, limits: authentication.limits };
    const isPage = target !== "api" && target !== undefined;
    const id = isPage ? `pages ${request.clientAddress}` : request.clientAddress;
    return { subject: { kind: "address", id }, limits: this.options.policy.current.plans.anonymous };
  }

  #rejectionOf(failure: AuthFailure, record: RequestRecord): Rejection {
    if (!(failure instanceof Unavailable)) return UNAUTHENTICATED[failure];
    this.errorLog.report("authentication", failure, record);
    return authenticationUnavailable(failure.retryAfterSeconds);
  }
}

function limitedResponse(request: Request, target: Target, decision: Decision): Response {
  return target === "api" || target === undefined
    ? rateLimitedResponse(decision)
    : target.rejectLimited(request, decision);
}

/** Whether a key may use a method. A read-only key may use safe methods, which change nothing (RFC 9110). */
export function mayUse({ access }: ApiKeyPrincipal, { method }: Request): boolean {
  return access === "write" || READ_METHODS.has(method) || method === "OPTIONS";
}
