import type { Route } from "../api/api.ts";
import { andThen, type Awaitable, recover } from "../api/awaitable.ts";
import { methodNotAllowed, Unavailable } from "../api/errors.ts";
import { newRequestId, requestIdOf } from "../api/dispatch.ts";
import { emptyResponse, protocolErrorResponse, withRequestId } from "../api/responses.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Addresses } from "../auth/client-address.ts";
import type { ApiKeyPrincipal, AuthFailure } from "../domain/api-keys.ts";
import type { Plans } from "../domain/plans.ts";
import type { RateLimiter } from "../domain/ports.ts";
import { type Decision, type Limits, newUsage, peek, type Subject } from "../domain/rate-limit.ts";
import {
  headerLine,
  type Pacer,
  type ProtocolErrorStatus,
  type Request,
  type RequestHandler,
  type Response,
} from "../http1/index.ts";
import { ErrorLog } from "../observe/event-reports.ts";
import type { Log } from "../observe/log.ts";
import { type RequestObserver, RequestRecord } from "../observe/request-metrics.ts";
import { Cors } from "./cors.ts";
import { createDispatch, createEndpoints } from "./dispatch.ts";
import { NOT_FOUND, READ_ONLY_KEY } from "./errors.ts";
import type { HandlerOptions } from "./handlers.ts";
import { PETSTORE_API } from "./operations.ts";
import {
  authFailureResponse,
  errorResponse,
  internalErrorResponse,
  rateLimitedResponse,
  rateLimitLines,
  unavailableResponse,
} from "./responses.ts";
import { type StaticRouteOptions, StaticRoutes } from "./static-routes.ts";

export interface HttpAppOptions extends HandlerOptions, StaticRouteOptions {
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly rateLimiter: Pick<RateLimiter, "decide" | "peek">;
  readonly plans: Plans;
  readonly addresses: Addresses;
  readonly log: Log;
  readonly requestTimeoutMs?: number | undefined;
  /** Origins whose scripts may use the API in a browser. */
  readonly corsOrigins?: readonly string[] | undefined;
  readonly observe?: RequestObserver | undefined;
  /** Is called for each request that is not valid HTTP/1.1 or arrives too slowly; `observe` is not. */
  readonly onProtocolError?: ((status: ProtocolErrorStatus) => void) | undefined;
}

/** Whose limits a request counts against. */
interface Counted {
  readonly subject: Subject;
  readonly limits: Limits;
}

export function createHttpApp(options: HttpAppOptions): RequestHandler {
  const { authenticator, rateLimiter, plans, addresses, clock, log, requestTimeoutMs } = options;
  const { observe, onProtocolError, corsOrigins = [] } = options;
  const cors = corsOrigins.length === 0 ? undefined : new Cors(corsOrigins);
  const errorLog = new ErrorLog(log);
  const staticRoutes = new StaticRoutes(options);
  const endpoints = createEndpoints(options);
  const dispatch = createDispatch({ clock, errorLog, requestTimeoutMs });

  /** authenticate → decide → route → dispatch: validate → handler → store → respond */
  function handleApiRequest(record: RequestRecord): Awaitable<Response> {
    const { request, requestId } = record;
    let counted: Counted | undefined;
    return recover(
      () =>
        andThen(authenticator.authenticate(request.headers.get("authorization"), request), (principal) => {
          record.principal = principal;
          counted = isAuthenticated(principal) ? principal : addressOf(request);
          return andThen(rateLimiter.decide(counted.subject, counted.limits), (decision) => {
            record.decision = decision;
            if (decision.outcome !== "allowed") return rateLimitedResponse(decision);
            if (!isAuthenticated(principal)) return rejectUnauthenticated(record, principal, decision);

            const match = PETSTORE_API.find(request.path);
            const id = match?.route.operations.get(request.method);
            const endpoint = id && endpoints.get(id);
            record.operation = id;
            if (principal.access === "read" && !isSafeMethod(request.method)) {
              return errorResponse(READ_ONLY_KEY, rateLimitLines(decision));
            }
            if (match === undefined) return errorResponse(NOT_FOUND, rateLimitLines(decision));
            if (endpoint === undefined) return otherMethodResponse(request, match.route, decision);

            const { identifier } = match;
            const { operation } = endpoint;
            return dispatch({ endpoint, operation, request, requestId, identifier, principal, decision });
          });
        }),
      (error) => undecided(error, counted ?? addressOf(request), requestId),
    );
  }

  function rejectUnauthenticated(
    { requestId }: RequestRecord,
    failure: AuthFailure,
    decision: Decision,
  ): Response {
    if (failure instanceof Unavailable) errorLog.report("authentication", failure, requestId);
    return authFailureResponse(failure, decision);
  }

  /** A page or an unknown path. */
  function handleStaticRequest(record: RequestRecord): Awaitable<Response> {
    const { request, requestId } = record;
    const route = staticRoutes.get(request.path);
    if (route?.isRateLimited === false) return orNotFound(route.respond(request, ""), "");
    const address = addressOf(request);
    return recover(
      () =>
        andThen(rateLimiter.decide(address.subject, address.limits), (decision) => {
          record.decision = decision;
          if (decision.outcome !== "allowed") return rateLimitedResponse(decision);
          const headerLines = rateLimitLines(decision);
          return recover(
            () => orNotFound(route?.respond(request, headerLines), headerLines),
            (error) => failedPage(error, headerLines, requestId),
          );
        }),
      (error) => undecided(error, address, requestId),
    );
  }

  function failedPage(error: unknown, headerLines: string, requestId: string): Response {
    errorLog.report("page", error, requestId);
    return internalErrorResponse(headerLines);
  }

  /** A request without a valid key counts against the limits of its IP address. */
  function addressOf(request: Request): Counted {
    return { subject: addresses.subjectOf(request), limits: plans.anonymous };
  }

  /** The response after an error of authentication or of the rate limiter: its headers show the usage known before. */
  function undecided(error: unknown, counted: Counted, requestId: string): Response {
    errorLog.report("authentication or rate limit", error, requestId);
    const headerLines = rateLimitLines({ ...knownUsage(counted), retryAfter: 0 });
    return error instanceof Unavailable
      ? unavailableResponse(error.retryAfterSeconds, headerLines)
      : internalErrorResponse(headerLines);
  }

  function knownUsage({ subject, limits }: Counted): Decision {
    try {
      return rateLimiter.peek(subject, limits);
    } catch {
      return peek(newUsage(), limits, clock.now());
    }
  }

  return {
    handle(request) {
      const record = new RequestRecord(request, requestIdOf(request), performance.now());
      const response =
        cors?.preflight(request) ??
        (PETSTORE_API.has(request.path) ? handleApiRequest(record) : handleStaticRequest(record));
      return andThen(response, (handled) => {
        observe?.(record, handled);
        return withRequestId(cors?.allow(request, handled) ?? handled, record.requestId);
      });
    },
    handleError(error) {
      const requestId = newRequestId();
      errorLog.report("request handler", error, requestId);
      return withRequestId(internalErrorResponse(), requestId);
    },
    protocolError(status) {
      onProtocolError?.(status);
      const requestId = newRequestId();
      errorLog.reportUnsupported(status, requestId);
      return withRequestId(protocolErrorResponse(status), requestId);
    },
  };
}

function orNotFound(response: Awaitable<Response | undefined>, headerLines: string): Awaitable<Response> {
  return andThen(response, (found) => found ?? errorResponse(NOT_FOUND, headerLines));
}

function isAuthenticated(principal: ApiKeyPrincipal | AuthFailure): principal is ApiKeyPrincipal {
  return typeof principal === "object" && !(principal instanceof Unavailable);
}

/** A safe method changes nothing (RFC 9110), so a read-only key may use it. */
function isSafeMethod(method: string): boolean {
  return method === "GET" || method === "HEAD" || method === "OPTIONS";
}

/** OPTIONS, or a method that the path does not allow. */
function otherMethodResponse({ method }: Request, { allowed }: Route, decision: Decision): Response {
  const headerLines = headerLine("Allow", allowed) + rateLimitLines(decision);
  if (method === "OPTIONS") return emptyResponse(204, headerLines);
  return errorResponse(methodNotAllowed(method, allowed), headerLines);
}

/** Responds until the app is ready. */
export const startupHandler: RequestHandler = {
  handle: (request) => withRequestId(unavailableResponse(1), requestIdOf(request)),
  handleError: () => withRequestId(internalErrorResponse(), newRequestId()),
  protocolError: (status) => withRequestId(protocolErrorResponse(status), newRequestId()),
};

/** From the next one on, the connection is slowed. A client that waits as `Retry-After` says gets nowhere near. */
const MAX_UNSLOWED_REJECTIONS = 20;
/** With this one, the connection closes. */
const MAX_REJECTIONS = 1_000;

/** A client that goes on without a valid key or quota leaves time to others: counts the 401 and 429 in a row. */
export function slowRejectedClients(): Pacer {
  let rejections = 0;
  return (status) => {
    rejections = status === 401 || status === 429 ? rejections + 1 : 0;
    if (rejections <= MAX_UNSLOWED_REJECTIONS) return "go on";
    return rejections < MAX_REJECTIONS ? "slow down" : "close";
  };
}
