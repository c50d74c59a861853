import type { Api, Route } from "../api/api.ts";
import {
  andThen,
  type Awaitable,
  recover,
  runCoroutine,
  type Coroutine,
  waitFor,
} from "../runtime/awaitable.ts";
import { type AnyInput, type CallSteps, dispatch, type OperationCall } from "../api/dispatch.ts";
import { protocolErrorResponse } from "../api/protocol-errors.ts";
import { newRequestId, requestIdOf, withRequestId } from "../api/request-ids.ts";
import { ABORTED_RESPONSE, emptyResponse, headerLinesOf, jsonResponse } from "../api/responses.ts";
import { INTERNAL_ERROR, methodNotAllowed, Rejection, rejectionOf, Unavailable } from "../api/errors.ts";
import { etagOf, matchesEtag } from "../runtime/etag.ts";
import { sha256 } from "../runtime/hash.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import { type ApiKeyPrincipal, type AuthFailure, isPrincipal } from "../domain/api-keys.ts";
import { IDEMPOTENCY_KEY_MAX_LENGTH } from "../domain/idempotency.ts";
import { MAX_BODY_BYTES } from "../domain/size-limits.ts";
import type { PolicyInEffect } from "../domain/policy.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { IdempotentRequest } from "../domain/ports/pets-and-orders.ts";
import type { Clock } from "../domain/ports/clock.ts";
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
import type { AnySuccess, Endpoint, PublicOperation } from "./endpoint.ts";
import type { Representation } from "./response-cache.ts";
import {
  apiLines,
  rateLimitedResponse,
  rateLimitLines,
  rejectionResponse,
  type StaticRoute,
} from "./responses.ts";

/** What the front uses of the table of operations. */
type PublicApi = Pick<Api<Readonly<Record<string, PublicOperation>>>, "has" | "find" | "allowed" | "errors">;

interface PublicAppOptions {
  readonly api: PublicApi;
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly clock: Pick<Clock, "now">;
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

function countedKey({ keyId: id, limits }: ApiKeyPrincipal): Counted {
  return { subject: { kind: "key", id }, limits };
}

/** What is known of a request before it is routed. */
interface AllowedRequest {
  readonly principal: ApiKeyPrincipal;
  readonly decision: Decision;
  /** Whether authentication or the rate limiter returned a promise, so that other work ran in between. */
  readonly hasWaited: boolean;
}

/** A request to an endpoint. */
interface PublicCall extends OperationCall, AllowedRequest {
  readonly endpoint: Endpoint;
  readonly record: RequestRecord;
}

/** Handles requests in these steps: authenticate → decide → route → dispatch: validate, handle → respond → observe. */
export class PublicApp implements RequestHandler {
  readonly #options: PublicAppOptions;
  readonly #observers: readonly RequestObserver[];
  readonly #cors: Cors | undefined;
  readonly #errorLog: ErrorLog;
  readonly #steps: CallSteps<PublicCall, Representation>;

  constructor(options: PublicAppOptions) {
    const { observers = [], corsOrigins = [] } = options;
    this.#options = options;
    this.#observers = observers;
    this.#cors = corsOrigins.length === 0 ? undefined : new Cors(corsOrigins, options.api.allowed);
    this.#errorLog = new ErrorLog(options.log);
    this.#steps = {
      reauthenticate: (call) => this.#reauthenticate(call),
      handle: callHandler,
      timeoutMs: options.requestTimeoutMs,
    };
  }

  handle(request: Request): Awaitable<Response> {
    const startedAt = performance.now();
    const record = new RequestRecord(request, requestIdOf(request));
    record.trace = this.#options.startTrace?.(request);
    const response =
      this.#cors?.preflight(request) ??
      runCoroutine(
        this.#options.api.has(request.path)
          ? this.#respondWithApi(record, startedAt)
          : this.#respondWithPage(record, startedAt),
      );
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

  /** authenticate → decide → route → respond to the call */
  *#respondWithApi(record: RequestRecord, startedAt: number): Coroutine<Awaitable<Response>> {
    const { whenCurrent, onUnauthenticated } = this.#options;
    const { request, trace } = record;
    try {
      const current = whenCurrent(startedAt);
      if (current) yield current;

      trace?.begin("authentication");
      const authenticating = this.#authenticate(request);
      const principal = authenticating instanceof Promise ? yield* waitFor(authenticating) : authenticating;
      record.principal = principal;
      if (!isPrincipal(principal)) onUnauthenticated?.(principal, request.clientAddress);

      trace?.begin("rate limit");
      const deciding = this.#decide(this.#countedOf(record));
      const decision = deciding instanceof Promise ? yield* waitFor(deciding) : deciding;
      record.decision = decision;
      trace?.end();

      if (decision.outcome !== "allowed") return rateLimitedResponse(decision);
      if (!isPrincipal(principal))
        return rejectionResponse(this.#authenticationRejection(principal, record), apiLines(decision));

      const hasWaited = authenticating instanceof Promise || deciding instanceof Promise;
      const call = this.#route(record, { principal, decision, hasWaited });
      return "endpoint" in call ? this.#respondToCall(call) : call;
    } catch (error) {
      return this.#failBeforeDecision(error, this.#countedOf(record), record);
    }
  }

  #authenticate(request: Request): Awaitable<ApiKeyPrincipal | AuthFailure> {
    return this.#options.authenticator.authenticate(request.headers.get("authorization"), request);
  }

  #decide({ subject, limits }: Counted): Awaitable<Decision> {
    return this.#options.rateLimiter.decide(subject, limits);
  }

  /** Finds the operation of a request within its limits. If there is none, returns the response. */
  #route(record: RequestRecord, allowed: AllowedRequest): PublicCall | Response {
    const { api, endpoints } = this.#options;
    const { request, requestId } = record;
    const { principal, decision } = allowed;
    const match = api.find(request.path);
    const id = match?.route.operations.get(request.method);
    const endpoint = id === undefined ? undefined : endpoints.get(id);
    record.operation = id;
    if (!mayUse(principal, request)) return rejectionResponse(READ_ONLY_KEY, apiLines(decision));
    if (match === undefined) return rejectionResponse(NOT_FOUND, apiLines(decision));
    if (endpoint === undefined) return otherMethodResponse(request, match.route, decision);
    const { operation } = endpoint;
    const { identifier } = match;
    const maxBodyBytes = MAX_BODY_BYTES;
    return { endpoint, operation, request, requestId, identifier, maxBodyBytes, record, ...allowed };
  }

  /** reuse a response, or dispatch → respond */
  #respondToCall(call: PublicCall): Awaitable<Response> {
    return recover(
      () =>
        andThen(this.#reuseOrDispatch(call), (made) =>
          made instanceof Rejection ? this.#reject(made, call) : respond(made, call),
        ),
      (error) => this.#failCall(error, call),
    );
  }

  /** Returns the response to an equal request, or validates the request and calls the handler. */
  #reuseOrDispatch(call: PublicCall): Awaitable<Representation | Rejection> {
    const { removal, reusable } = call.endpoint;
    if (removal && this.#options.clock.now() >= removal.at) return removal.rejection;
    if (!reusable) return dispatch(call, this.#steps);
    return reusable.findOrMake(call.request.query, () => dispatch(call, this.#steps));
  }

  /**
   * Authenticates again after the body has arrived. The request was counted when its head arrived, and still counts for
   * its key.
   */
  async #reauthenticate(call: PublicCall): Promise<PublicCall | Rejection> {
    const { whenCurrent, onUnauthenticated } = this.#options;
    const { request, record } = call;
    await whenCurrent(performance.now());
    const principal = await this.#authenticate(request);
    if (isPrincipal(principal)) return mayUse(principal, request) ? { ...call, principal } : READ_ONLY_KEY;
    onUnauthenticated?.(principal, request.clientAddress);
    return this.#authenticationRejection(principal, record);
  }

  #authenticationRejection(failure: AuthFailure, record: RequestRecord): Rejection {
    if (!(failure instanceof Unavailable)) return UNAUTHENTICATED[failure];
    this.#errorLog.report("authentication", failure, record);
    return authenticationUnavailable(failure.retryAfterSeconds);
  }

  /** Responds to a request for a page or an unknown path: decide → respond. */
  *#respondWithPage(record: RequestRecord, startedAt: number): Coroutine<Awaitable<Response>> {
    const { staticRouteAt, whenCurrent } = this.#options;
    const { request, requestId } = record;
    const route = staticRouteAt(request.path);
    if (route?.isRateLimited === false) return orNotFound(route.respond(request, ""), "");
    const counted = () => this.#readerOf(request, route);
    try {
      const current = whenCurrent(startedAt);
      if (current) yield current;

      const deciding = this.#decide(counted());
      const decision = deciding instanceof Promise ? yield* waitFor(deciding) : deciding;
      record.decision = decision;
      if (decision.outcome !== "allowed")
        return route?.rejectLimited(request, decision) ?? rateLimitedResponse(decision);

      const headerLines = rateLimitLines(decision);
      return recover(
        () => orNotFound(route?.respond(request, headerLines), headerLines),
        (error) => this.#fail(error, headerLines, { where: "page", request, requestId }),
      );
    } catch (error) {
      return this.#failBeforeDecision(error, counted(), record);
    }
  }

  #countedOf({ principal, request }: RequestRecord): Counted {
    return isPrincipal(principal) ? countedKey(principal) : this.#addressOf(request.clientAddress);
  }

  /**
   * Pages have a quota of their own, so that a program that has exhausted the quota of its address leaves the
   * documentation readable for people. An unknown path is no page.
   */
  #readerOf({ clientAddress }: Request, page: StaticRoute | undefined): Counted {
    return this.#addressOf(page ? `pages ${clientAddress}` : clientAddress);
  }

  /** A request without a valid key counts against the limits of an address. */
  #addressOf(id: string): Counted {
    return { subject: { kind: "address", id }, limits: this.#options.policy.current.plans.anonymous };
  }

  /** The response after an error of authentication or of the rate limiter. Its headers show the last known quota. */
  #failBeforeDecision(
    error: unknown,
    { subject, limits }: Counted,
    { request, requestId }: RequestRecord,
  ): Response {
    const headerLines = apiLines(this.#options.rateLimiter.peek(subject, limits));
    return this.#fail(error, headerLines, { where: "authentication or rate limit", request, requestId });
  }

  #reject(rejection: Rejection, call: PublicCall): Response {
    const headerLines = operationLines(call) + apiLines(call.decision);
    return rejectionResponse(rejection, headerLines, this.#options.api.errors);
  }

  #failCall(error: unknown, call: PublicCall): Response {
    const { endpoint, decision, request, requestId } = call;
    if (error instanceof RequestAborted) return ABORTED_RESPONSE;
    const headerLines = operationLines(call) + apiLines(decision);
    return this.#fail(error, headerLines, { where: endpoint.id, request, requestId });
  }

  /** Responds with 500, or with 503 if the service is unavailable. */
  #fail(
    error: unknown,
    headerLines: string,
    { where, ...failedRequest }: { where: string; request: Request; requestId: string },
  ): Response {
    this.#errorLog.report(where, error, failedRequest);
    return rejectionResponse(rejectionOf(error), headerLines);
  }
}

function callHandler(input: AnyInput, call: PublicCall): Awaitable<Representation | Rejection> {
  const idempotentRequest = idempotentRequestOf(input, call);
  if (idempotentRequest instanceof Rejection) return idempotentRequest;
  call.record.trace?.begin("store");
  return andThen(call.endpoint.handler(input, call, idempotentRequest), (result) =>
    result instanceof Rejection ? result : representationOf(result, call),
  );
}

function representationOf(result: AnySuccess, call: PublicCall): Representation {
  const { body, headers, revision } = result;
  let headerLines = operationLines(call);
  if (headers) headerLines += headerLinesOf(headers);
  if (!call.endpoint.operation.success.headers.includes("ETag"))
    return { headerLines, body, etag: undefined, revision };
  // When a next page appears, the representation is another one, although its body is the same.
  const { etag = etagOf((headers?.["Link"] ?? "") + body) } = result;
  return { headerLines: headerLines + headerLine("ETag", etag), body, etag, revision };
}

/** Responds to GET with 304 if the client already has this representation. */
function respond(
  { headerLines, body, etag }: Representation,
  { endpoint: { operation }, request: { headers }, decision }: PublicCall,
): Response {
  const { method, success } = operation;
  const lines = headerLines + apiLines(decision);
  const isKnown = method === "GET" && etag !== undefined && matchesEtag(headers.get("if-none-match"), etag);
  return isKnown ? emptyResponse(304, lines) : jsonResponse(success.status, lines, body);
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
  { endpoint: { operation }, request, principal }: PublicCall,
): IdempotentRequest | undefined | Rejection<"invalid_parameter"> {
  const header = operation.acceptsIdempotencyKey ? request.headers.get("idempotency-key") : null;
  if (header === null || bytes === undefined) return undefined;
  const idempotencyKey = QUOTED.exec(header)?.[1] ?? header;
  if (!IDEMPOTENCY_KEY.test(idempotencyKey)) return INVALID_IDEMPOTENCY_KEY;
  return { keyId: principal.keyId, idempotencyKey, fingerprint: sha256(bytes) };
}

/** The header lines of every response of the operation. */
function operationLines({ endpoint, identifier }: PublicCall): string {
  return endpoint.deprecationLines?.(identifier) ?? "";
}
