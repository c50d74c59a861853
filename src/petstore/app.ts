import type { Route } from "../api/api.ts";
import { andThen, type Awaitable, recover } from "../runtime/event-loop.ts";
import { type AnyInput, type Call, dispatch, type DispatchSteps } from "../api/dispatch.ts";
import { protocolErrorResponse } from "../api/protocol-errors.ts";
import { newRequestId, requestIdOf, withRequestId } from "../api/request-ids.ts";
import { ABORTED_RESPONSE, emptyResponse, headerLinesOf, jsonResponse } from "../api/responses.ts";
import { INTERNAL_ERROR, methodNotAllowed, Rejection, rejectionOf, Unavailable } from "../api/errors.ts";
import { etagOf, sha256 } from "../runtime/hash.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import { type ApiKeyPrincipal, type AuthFailure, isPrincipal } from "../domain/api-keys.ts";
import { IDEMPOTENCY_KEY_MAX_LENGTH, MAX_BODY_BYTES } from "../domain/size-limits.ts";
import type { PolicyInEffect } from "../domain/limit-policy.ts";
import type { IdempotentRequest, RateLimiter } from "../domain/ports.ts";
import type { Decision, Limits, Subject } from "../domain/rate-limit.ts";
import {
  headerLine,
  type ProtocolErrorStatus,
  type Request,
  RequestAborted,
  type RequestHandler,
  type Response,
} from "../http1/index.ts";
import { ErrorLog } from "../observe/event-reports.ts";
import type { Log } from "../observe/log.ts";
import { type RequestObserver, RequestRecord } from "../observe/request-record.ts";
import type { Trace } from "../observe/trace.ts";
import { Cors } from "./cors.ts";
import {
  authenticationUnavailable,
  INVALID_IDEMPOTENCY_KEY,
  NOT_FOUND,
  READ_ONLY_KEY,
  TOO_MANY_CONNECTIONS,
  UNAUTHENTICATED,
} from "./errors.ts";
import { type AnySuccess, createEndpoints, type Endpoint, type HandlerOptions } from "./handlers.ts";
import { PETSTORE_API } from "./operations.ts";
import type { Representation } from "./response-cache.ts";
import {
  apiLines,
  conditionalResponse,
  rateLimitedResponse,
  rateLimitLines,
  rejectionResponse,
  type StaticRoute,
} from "./responses.ts";

interface PetstoreAppOptions extends HandlerOptions {
  readonly staticRouteAt: (path: string) => StaticRoute | undefined;
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly rateLimiter: Pick<RateLimiter, "decide" | "peek">;
  readonly policy: PolicyInEffect;
  /** Returns a promise if what is cached of keys, limits and pets is too old to be used. */
  readonly whenCurrent: (now: number) => Promise<void> | undefined;
  readonly log: Log;
  readonly requestTimeoutMs?: number | undefined;
  /** The origins whose scripts may use the API in a browser. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Called for each request without a valid key. */
  readonly onUnauthenticated?: (failure: AuthFailure, address: string) => void;
  /** Undefined if no request is traced. */
  readonly startTrace?: ((request: Request) => Trace | undefined) | undefined;
  /** Called for each request, in this order. */
  readonly observers?: readonly RequestObserver[];
  /** Called for each request that is not valid HTTP/1.1 or arrives too slowly. `observers` are not called for it. */
  readonly onProtocolError?: ((status: ProtocolErrorStatus) => void) | undefined;
}

/** The subject and the limits that a request counts against. */
interface Counted {
  readonly subject: Subject;
  readonly limits: Limits;
}

function keyOf({ keyId: id, limits }: ApiKeyPrincipal): Counted {
  return { subject: { kind: "key", id }, limits };
}

/** What is known of a request before it is routed. */
interface Admission {
  readonly principal: ApiKeyPrincipal;
  readonly decision: Decision;
  /** Whether authentication or the rate limiter returned a promise, so that other work ran in between. */
  readonly hasWaited: boolean;
}

/** A request to an endpoint. */
interface PetstoreCall extends Call, Admission {
  readonly endpoint: Endpoint;
  readonly record: RequestRecord;
}

/**
 * Handles requests in these steps: authenticate → decide → route → dispatch: validate → handler → store → respond →
 * observe.
 */
export class PetstoreApp implements RequestHandler {
  readonly #options: PetstoreAppOptions;
  readonly #observers: readonly RequestObserver[];
  readonly #cors: Cors | undefined;
  readonly #errorLog: ErrorLog;
  readonly #endpoints: ReturnType<typeof createEndpoints>;
  readonly #steps: DispatchSteps<PetstoreCall, AnySuccess>;

  constructor(options: PetstoreAppOptions) {
    const { observers = [], corsOrigins = [] } = options;
    this.#options = options;
    this.#observers = observers;
    this.#cors = corsOrigins.length === 0 ? undefined : new Cors(corsOrigins);
    this.#errorLog = new ErrorLog(options.log);
    this.#endpoints = createEndpoints(options);
    this.#steps = {
      maxBodyBytes: () => MAX_BODY_BYTES,
      reauthenticate: (call) => this.#reauthenticate(call),
      callHandler,
      succeed: succeeded,
      reject: rejected,
      fail: (error, call) => this.#failedCall(error, call),
      timeoutMs: options.requestTimeoutMs,
    };
  }

  handle(request: Request): Awaitable<Response> {
    const startedAt = performance.now();
    const record = new RequestRecord(request, requestIdOf(request));
    record.trace = this.#options.startTrace?.(request);
    const response =
      this.#cors?.preflight(request) ??
      (PETSTORE_API.has(request.path)
        ? this.#whenCurrent(startedAt, () => this.#handleApiRequest(record))
        : this.#handleStaticRequest(record, startedAt));
    return andThen(response, (handled) => {
      record.durationMs = performance.now() - startedAt;
      for (const observe of this.#observers) observe(record, handled);
      return withRequestId(this.#cors?.allow(request, handled) ?? handled, record.requestId);
    });
  }

  handleError(error: unknown): Response {
    const requestId = newRequestId();
    this.#errorLog.report("request handler", error, { requestId });
    return withRequestId(rejectionResponse(INTERNAL_ERROR, ""), requestId);
  }

  protocolError(status: ProtocolErrorStatus): Response {
    this.#options.onProtocolError?.(status);
    const requestId = newRequestId();
    this.#errorLog.reportUnsupported(status, requestId);
    return withRequestId(protocolErrorResponse(status), requestId);
  }

  tooManyConnections(): Response {
    return withRequestId(rejectionResponse(TOO_MANY_CONNECTIONS, ""), newRequestId());
  }

  /** Continues at once, unless this process was paused. */
  #whenCurrent<T>(now: number, next: () => Awaitable<T>): Awaitable<T> {
    const current = this.#options.whenCurrent(now);
    return current ? current.then(next) : next();
  }

  #handleApiRequest(record: RequestRecord): Awaitable<Response> {
    const { authenticator, rateLimiter, onUnauthenticated } = this.#options;
    const { request, trace } = record;
    let counted: Counted | undefined;
    trace?.begin("authentication");
    return recover(
      () => {
        const authenticated = authenticator.authenticate(request.headers.get("authorization"), request);
        return andThen(authenticated, (principal) => {
          record.principal = principal;
          if (isPrincipal(principal)) counted = keyOf(principal);
          else {
            counted = this.#addressOf(request);
            onUnauthenticated?.(principal, request.clientAddress);
          }
          trace?.begin("rate limit");
          const decided = rateLimiter.decide(counted.subject, counted.limits);
          const hasWaited = authenticated instanceof Promise || decided instanceof Promise;
          return andThen(decided, (decision) => {
            trace?.end();
            record.decision = decision;
            if (decision.outcome !== "allowed") return rateLimitedResponse(decision);
            if (isPrincipal(principal)) return this.#routeRequest(record, { principal, decision, hasWaited });
            return rejectionResponse(this.#unauthenticated(principal, record), apiLines(decision));
          });
        });
      },
      (error) => this.#undecided(error, counted ?? this.#addressOf(request), record),
    );
  }

  /** Finds the operation of a request that is authenticated and within its limits. */
  #routeRequest(record: RequestRecord, admission: Admission): Awaitable<Response> {
    const { request, requestId } = record;
    const { principal, decision, hasWaited } = admission;
    const match = PETSTORE_API.find(request.path);
    const id = match?.route.operations.get(request.method);
    const endpoint = id && this.#endpoints.get(id);
    record.operation = id;
    if (!mayUse(principal, request)) return rejectionResponse(READ_ONLY_KEY, apiLines(decision));
    if (match === undefined) return rejectionResponse(NOT_FOUND, apiLines(decision));
    if (endpoint === undefined) return otherMethodResponse(request, match.route, decision);

    const { identifier } = match;
    const { operation } = endpoint;
    return this.#dispatchCall({
      endpoint,
      operation,
      request,
      requestId,
      identifier,
      hasWaited,
      record,
      principal,
      decision,
    });
  }

  /** removed? → cached or shared? → validate → handler → respond */
  #dispatchCall(call: PetstoreCall): Awaitable<Response> {
    const { endpoint, request, decision } = call;
    const { removal, cache, shared } = endpoint;
    if (removal && this.#options.clock.now() >= removal.at) return rejected(removal.rejection, call);
    const cached = cache?.find(request.query);
    if (cached) return conditionalResponse(request, cached, decision);
    const response = shared?.find(request.query);
    if (response === undefined) return dispatch(call, this.#steps);
    return response.then((made) =>
      made ? conditionalResponse(request, made, decision) : dispatch(call, this.#steps),
    );
  }

  /**
   * Authenticates again after the body has arrived. The request was counted when its head arrived, and still counts for
   * its key.
   */
  #reauthenticate(call: PetstoreCall): Awaitable<PetstoreCall | Rejection> {
    const { authenticator, onUnauthenticated } = this.#options;
    const { request, record } = call;
    const authenticate = () => authenticator.authenticate(request.headers.get("authorization"), request);
    return andThen(this.#whenCurrent(performance.now(), authenticate), (principal) => {
      if (isPrincipal(principal)) return mayUse(principal, request) ? { ...call, principal } : READ_ONLY_KEY;
      onUnauthenticated?.(principal, request.clientAddress);
      return this.#unauthenticated(principal, record);
    });
  }

  #unauthenticated(failure: AuthFailure, record: RequestRecord): Rejection {
    if (!(failure instanceof Unavailable)) return UNAUTHENTICATED[failure];
    this.#errorLog.report("authentication", failure, record);
    return authenticationUnavailable(failure.retryAfterSeconds);
  }

  /** Responds to a request for a page or an unknown path. */
  #handleStaticRequest(record: RequestRecord, startedAt: number): Awaitable<Response> {
    const { rateLimiter, staticRouteAt } = this.#options;
    const { request, requestId } = record;
    const route = staticRouteAt(request.path);
    if (route?.isRateLimited === false) return orNotFound(route.respond(request, ""), "");
    const counted = () => (route === undefined ? this.#addressOf(request) : this.#readerOf(request));
    const decide = () => {
      const { subject, limits } = counted();
      return rateLimiter.decide(subject, limits);
    };
    return recover(
      () =>
        andThen(this.#whenCurrent(startedAt, decide), (decision) => {
          record.decision = decision;
          if (decision.outcome !== "allowed")
            return route?.rejectLimited(request, decision) ?? rateLimitedResponse(decision);
          const headerLines = rateLimitLines(decision);
          return recover(
            () => orNotFound(route?.respond(request, headerLines), headerLines),
            (error) => this.#failed(error, headerLines, { where: "page", request, requestId }),
          );
        }),
      (error) => this.#undecided(error, counted(), record),
    );
  }

  /** The address of a request without a valid key, which counts against the limits of that address. */
  #addressOf({ clientAddress: id }: Request): Counted {
    return { subject: { kind: "address", id }, limits: this.#options.policy.current.plans.anonymous };
  }

  /**
   * The subject of a request for a page. Pages have a quota of their own, so that a program that has exhausted the
   * quota of its address leaves the documentation readable for people.
   */
  #readerOf({ clientAddress }: Request): Counted {
    return {
      subject: { kind: "address", id: `pages ${clientAddress}` },
      limits: this.#options.policy.current.plans.anonymous,
    };
  }

  /** The response after an error of authentication or of the rate limiter. Its headers show the last known quota. */
  #undecided(error: unknown, { subject, limits }: Counted, { request, requestId }: RequestRecord): Response {
    const headerLines = apiLines({ ...this.#options.rateLimiter.peek(subject, limits), retryAfter: 0 });
    return this.#failed(error, headerLines, { where: "authentication or rate limit", request, requestId });
  }

  #failedCall(error: unknown, call: PetstoreCall): Response {
    const { endpoint, decision, request, requestId } = call;
    if (error instanceof RequestAborted) return ABORTED_RESPONSE;
    const headerLines = operationLines(call) + apiLines(decision);
    return this.#failed(error, headerLines, { where: endpoint.id, request, requestId });
  }

  /** Responds with 500, or with 503 if the service is unavailable. */
  #failed(
    error: unknown,
    headerLines: string,
    { where, ...failedRequest }: { where: string; request: Request; requestId: string },
  ): Response {
    this.#errorLog.report(where, error, failedRequest);
    return rejectionResponse(rejectionOf(error), headerLines);
  }
}

function callHandler(input: AnyInput, call: PetstoreCall): Awaitable<AnySuccess | Rejection> {
  const { endpoint, request, record } = call;
  const idempotentRequest = idempotentRequestOf(input, call);
  if (idempotentRequest instanceof Rejection) return idempotentRequest;
  record.trace?.begin("store");
  const result = endpoint.handler(input, call, idempotentRequest);
  if (endpoint.shared && result instanceof Promise) {
    const shared = result.then((made) =>
      made instanceof Rejection ? undefined : representationOf(made, call),
    );
    endpoint.shared.add(request.query, shared);
  }
  return result;
}

function orNotFound(response: Awaitable<Response | undefined>, headerLines: string): Awaitable<Response> {
  return andThen(response, (found) => found ?? rejectionResponse(NOT_FOUND, headerLines));
}

/** Whether a key may use a method. A read-only key may use safe methods, which change nothing (RFC 9110). */
function mayUse({ access }: ApiKeyPrincipal, { method }: Request): boolean {
  return access === "write" || method === "GET" || method === "HEAD" || method === "OPTIONS";
}

/** Responds to OPTIONS, and to methods that the path does not allow. */
function otherMethodResponse({ method }: Request, { allowed }: Route, decision: Decision): Response {
  const headerLines = headerLine("Allow", allowed) + apiLines(decision);
  if (method === "OPTIONS") return emptyResponse(204, headerLines);
  return rejectionResponse(methodNotAllowed(method, allowed), headerLines);
}

const IDEMPOTENCY_KEY = new RegExp(`^[\\x21-\\x7e]{1,${IDEMPOTENCY_KEY_MAX_LENGTH}}$`);
const QUOTED = /^"(.*)"$/;

/**
 * Reads the Idempotency-Key. `"a"` and `a` are the same key, because a structured header (RFC 9651) quotes its strings.
 */
function idempotentRequestOf(
  { bytes }: AnyInput,
  { endpoint: { operation }, request, principal }: PetstoreCall,
): IdempotentRequest | undefined | Rejection<"invalid_parameter"> {
  const header = operation.acceptsIdempotencyKey ? request.headers.get("idempotency-key") : null;
  if (header === null || bytes === undefined) return undefined;
  const idempotencyKey = QUOTED.exec(header)?.[1] ?? header;
  if (!IDEMPOTENCY_KEY.test(idempotencyKey)) return INVALID_IDEMPOTENCY_KEY;
  return { keyId: principal.keyId, idempotencyKey, fingerprint: sha256(bytes) };
}

/** The header lines of every response of the operation. */
function operationLines({ endpoint, identifier }: PetstoreCall): string {
  return endpoint.deprecationLines?.(identifier) ?? "";
}

function rejected(rejection: Rejection, call: PetstoreCall): Response {
  return rejectionResponse(rejection, operationLines(call) + apiLines(call.decision));
}

function succeeded(result: AnySuccess, call: PetstoreCall): Response {
  const { body, dependsOn } = result;
  const { endpoint, decision, request } = call;
  const { method, success } = endpoint.operation;
  if (method !== "GET") {
    // It is the ETag that GET has of the resource in the body.
    const etag = success.headers.includes("ETag") ? headerLine("ETag", etagOf(body)) : "";
    return jsonResponse(success.status, resultLines(result, call) + etag + apiLines(decision), body);
  }
  const representation = representationOf(result, call);
  if (dependsOn) endpoint.cache?.add(request.query, representation, dependsOn);
  return conditionalResponse(request, representation, decision);
}

function resultLines({ headers }: AnySuccess, call: PetstoreCall): string {
  const lines = operationLines(call);
  return headers ? lines + headerLinesOf(headers) : lines;
}

function representationOf(result: AnySuccess, call: PetstoreCall): Representation {
  // When a next page appears, the representation is another one, although its body is the same.
  const { body, headers, etag = etagOf((headers?.["Link"] ?? "") + body) } = result;
  return { headerLines: resultLines(result, call) + headerLine("ETag", etag), body, etag };
}
