import type { Api, Route } from "../api/api.ts";
import { andThen, type Awaitable, recover, runCoroutine } from "../runtime/awaitable.ts";
import { type CallSteps, dispatch } from "../api/dispatch.ts";
import { protocolErrorResponse } from "../api/protocol-errors.ts";
import { newRequestId, requestIdOf, withRequestId } from "../api/request-ids.ts";
import { ABORTED_RESPONSE, emptyResponse } from "../api/responses.ts";
import { INTERNAL_ERROR, methodNotAllowed, Rejection, rejectionOf } from "../api/errors.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { MAX_BODY_BYTES } from "../domain/size-limits.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { Decision, WindowState } from "../domain/rate-limit.ts";
import {
  headerLine,
  type ProtocolErrorStatus,
  type Request,
  RequestAborted,
  type RequestHandler,
  type Response,
} from "../http1/index.ts";
import { ErrorLog } from "../observe/error-log.ts";
import type { Log } from "../observe/log.ts";
import { type RequestObserver, RequestRecord } from "../observe/request-record.ts";
import type { Trace } from "../observe/trace.ts";
import { Admission, type AdmissionOptions, type AdmittedCall, mayUse } from "./admission.ts";
import { Cors } from "./cors.ts";
import { NOT_FOUND, READ_ONLY_KEY, TOO_MANY_CONNECTIONS } from "./errors.ts";
import type { Endpoint, PublicOperation } from "./endpoint.ts";
import { callHandler, operationLines, type PublicCall, respond } from "./public-call.ts";
import type { Representation } from "./response-cache.ts";
import { apiLines, rateLimitLines, rejectionResponse, type StaticRoute } from "./responses.ts";

/** What the front uses of the table of operations. */
type PublicApi = Pick<Api<Readonly<Record<string, PublicOperation>>>, "has" | "find" | "allowed" | "errors">;

interface PublicAppOptions extends AdmissionOptions {
  readonly api: PublicApi;
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly clock: Pick<Clock, "now">;
  readonly staticRouteAt: (path: string) => StaticRoute | undefined;
  readonly log: Log;
  readonly requestTimeoutMs?: number | undefined;
  /** The origins whose scripts may use the API in a browser. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Undefined if no request is traced. */
  readonly startTrace?: ((request: Request) => Trace | undefined) | undefined;
  /** Called for each request, in this order. */
  readonly observers?: readonly RequestObserver[];
  /** Called for each request that is not valid HTTP/1.1 or arrives too slowly. `observers` are not called for it. */
  readonly onProtocolError?: ((status: ProtocolErrorStatus) => void) | undefined;
}

/** Handles requests in these steps: admit → route → dispatch: validate, handle → respond → observe. */
export class PublicApp implements RequestHandler {
  readonly #options: PublicAppOptions;
  readonly #observers: readonly RequestObserver[];
  readonly #cors: Cors | undefined;
  readonly #errorLog: ErrorLog;
  readonly #admission: Admission;
  readonly #steps: CallSteps<PublicCall, Representation>;

  constructor(options: PublicAppOptions) {
    const { observers = [], corsOrigins = [] } = options;
    this.#options = options;
    this.#observers = observers;
    this.#cors = corsOrigins.length === 0 ? undefined : new Cors(corsOrigins, options.api.allowed);
    this.#errorLog = new ErrorLog(options.log);
    this.#admission = new Admission(options, this.#errorLog);
    this.#steps = {
      reauthenticate: (call) => this.#reauthenticate(call),
      handle: callHandler,
      timeoutMs: options.requestTimeoutMs,
    };
  }

  handle(request: Request): Awaitable<Response> {
    const startedAt = scheduler.now();
    const record = new RequestRecord(request, requestIdOf(request));
    record.trace = this.#options.startTrace?.(request);
    const response = this.#cors?.preflight(request) ?? this.#respond(record, startedAt);
    return andThen(response, (handled) => {
      record.durationMs = scheduler.now() - startedAt;
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

  /** admit → respond with a page, or route → respond to the call */
  #respond(record: RequestRecord, startedAt: number): Awaitable<Response> {
    const { api, staticRouteAt } = this.#options;
    const { request } = record;
    const isCall = api.has(request.path);
    const page = isCall ? undefined : staticRouteAt(request.path);
    if (page?.isRateLimited === false) return orNotFound(page.respond(request, ""), "");
    let early: EarlyRead | undefined;
    const admission = this.#admission.admit(
      record,
      startedAt,
      isCall ? "api" : page,
      (principal, decision) => {
        early = this.#readEarly(record, { principal, decision, hasWaited: true });
      },
    );
    return andThen(runCoroutine(admission), (admitted) => {
      if ("status" in admitted) return admitted;
      if (admitted.principal === undefined) return this.#respondWithPage(page, admitted.decision, record);
      if (early) {
        const { call, made } = early;
        record.operation = call.endpoint.id;
        return this.#respondToCall({ ...call, decision: admitted.decision }, made);
      }
      const call = this.#route(record, admitted);
      return "status" in call ? call : this.#respondToCall(call);
    });
  }

  /**
   * Reads what a request asks for while PostgreSQL decides about it, if its key is far from its limits and the response
   * depends neither on the key nor on the decision. If the request is rejected after all, nothing shows what was read.
   */
  #readEarly(record: RequestRecord, expected: AdmittedCall): EarlyRead | undefined {
    const { api, endpoints } = this.#options;
    const { request, requestId } = record;
    // The spans of a trace follow each other.
    if (request.method !== "GET" || record.trace || !isFarFromLimits(expected.decision)) return undefined;
    const id = api.find(request.path)?.route.operations.get(request.method);
    const endpoint = id === undefined ? undefined : endpoints.get(id);
    if (!endpoint?.reusable) return undefined;
    const { operation } = endpoint;
    const common = { request, requestId, identifier: "", maxBodyBytes: MAX_BODY_BYTES, record };
    const call = { endpoint, operation, ...common, ...expected };
    const made = Promise.try(() => this.#reuseOrDispatch(call));
    made.catch(() => {});
    return { call, made };
  }

  /** Finds the operation of a request within its limits. If there is none, returns the response. */
  #route(record: RequestRecord, admitted: AdmittedCall): PublicCall | Response {
    const { api, endpoints } = this.#options;
    const { request, requestId } = record;
    const { principal, decision } = admitted;
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
    return { endpoint, operation, request, requestId, identifier, maxBodyBytes, record, ...admitted };
  }

  /** reuse a response, or dispatch → respond */
  #respondToCall(call: PublicCall, early?: EarlyRead["made"]): Awaitable<Response> {
    return recover(
      () =>
        andThen(early ?? this.#reuseOrDispatch(call), (made) =>
          made instanceof Rejection ? this.#reject(made, call) : respond(made, call),
        ),
      (error) => this.#fail(error, call),
    );
  }

  /** Returns the response to an equal request, or validates the request and calls the handler. */
  #reuseOrDispatch(call: PublicCall): Awaitable<Representation | Rejection> {
    const { removal, reusable } = call.endpoint;
    if (removal && this.#options.clock.now() >= removal.at) return removal.rejection;
    if (!reusable) return dispatch(call, this.#steps);
    return reusable.findOrMake(call.request.query, () => dispatch(call, this.#steps));
  }

  async #reauthenticate(call: PublicCall): Promise<PublicCall | Rejection> {
    const principal = await this.#admission.reauthenticate(call.record);
    return principal instanceof Rejection ? principal : { ...call, principal };
  }

  /** Responds to a request for a page or an unknown path. */
  #respondWithPage(
    page: StaticRoute | undefined,
    decision: Decision,
    record: RequestRecord,
  ): Awaitable<Response> {
    const headerLines = rateLimitLines(decision);
    return recover(
      () => orNotFound(page?.respond(record.request, headerLines), headerLines),
      (error) => {
        this.#errorLog.report("page", error, record);
        return rejectionResponse(rejectionOf(error), headerLines);
      },
    );
  }

  #reject(rejection: Rejection, call: PublicCall): Response {
    const headerLines = operationLines(call) + apiLines(call.decision);
    return rejectionResponse(rejection, headerLines, this.#options.api.errors);
  }

  /** Responds with 500, or with 503 if the service is unavailable. */
  #fail(error: unknown, call: PublicCall): Response {
    if (error instanceof RequestAborted) return ABORTED_RESPONSE;
    this.#errorLog.report(call.endpoint.id, error, call);
    return this.#reject(rejectionOf(error), call);
  }
}

/** A read that began before the decision. */
interface EarlyRead {
  readonly call: PublicCall;
  readonly made: Promise<Representation | Rejection>;
}

/** A key that is nearer to a limit may have used it on another server. */
const FAR_PERCENT = 10;

function isFarFromLimits({ outcome, minute, day }: Decision): boolean {
  const isFar = ({ limit, remaining }: WindowState) => 100 * remaining >= FAR_PERCENT * limit;
  return outcome === "allowed" && isFar(minute) && isFar(day);
}

function orNotFound(response: Awaitable<Response | undefined>, headerLines: string): Awaitable<Response> {
  return andThen(response, (found) => found ?? rejectionResponse(NOT_FOUND, headerLines));
}

/** Responds to OPTIONS, and to methods that the path does not allow. */
function otherMethodResponse({ method }: Request, { allowed }: Route, decision: Decision): Response {
  const headerLines = headerLine("Allow", allowed) + apiLines(decision);
  if (method === "OPTIONS") return emptyResponse(204, headerLines);
  return rejectionResponse(methodNotAllowed(method, allowed), headerLines);
}
