import type { ApiKeyPrincipal, Authenticator, AuthFailure } from "../auth/authenticator.ts";
import type { Addresses } from "../auth/client-address.ts";
import { NOT_FOUND } from "../contract/errors.ts";
import { andThen, type Awaitable, recover } from "../domain/awaitable.ts";
import type { Plans } from "../domain/plans.ts";
import type { RateLimiter } from "../domain/ports.ts";
import type { Decision } from "../domain/rate-limit.ts";
import type { ProtocolErrorStatus, Request, RequestHandler, Response } from "../http1/index.ts";
import type { Log } from "../log.ts";
import { createDispatch, createEndpoints, type EndpointOptions, rawInputOf } from "./dispatch.ts";
import { ErrorLog } from "./error-log.ts";
import { newRequestId, requestIdOf } from "./request-id.ts";
import {
  authFailureResponse,
  errorResponse,
  internalErrorResponse,
  isAuthenticated,
  protocolErrorResponse,
  rateLimitedResponse,
  rateLimitLines,
  unavailableResponse,
  withRequestId,
} from "./responses.ts";
import { isApiPath, otherMethodResponse, Router } from "./router.ts";
import { createStaticRoutes, type StaticRouteOptions } from "./static-routes.ts";

export interface HttpAppOptions extends EndpointOptions, StaticRouteOptions {
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly rateLimiter: Pick<RateLimiter, "decide">;
  readonly plans: Plans;
  readonly addresses: Addresses;
  readonly log: Log;
  readonly requestTimeoutMs?: number | undefined;
}

export function createHttpApp(options: HttpAppOptions): RequestHandler {
  const { authenticator, rateLimiter, plans, addresses, clock, log, requestTimeoutMs } = options;
  const errorLog = new ErrorLog(log);
  const staticRoutes = createStaticRoutes(options);
  const router = new Router(createEndpoints(options));
  const dispatch = createDispatch({ clock, errorLog, requestTimeoutMs });

  /** authenticate → decide → route → dispatch: validate → handler → store → respond */
  function handleApiRequest(request: Request, requestId: string): Awaitable<Response> {
    return andThen(authenticator.authenticate(request.headers.get("authorization")), (principal) =>
      andThen(decide(request, principal), (decision) => {
        if (decision.outcome !== "allowed") return rateLimitedResponse(decision);
        if (!isAuthenticated(principal)) return authFailureResponse(principal, decision);

        const route = router.find(request.path);
        if (route === undefined) return errorResponse(NOT_FOUND, rateLimitLines(decision));
        const endpoint = route.endpoints.get(request.method);
        if (endpoint === undefined) return otherMethodResponse(request, route, decision);

        const rawInput = rawInputOf(request, route, endpoint);
        return dispatch({ endpoint, request, requestId, principal, decision, rawInput });
      }),
    );
  }

  /** A request without a valid key counts against the limits of its IP address. */
  function decide(request: Request, principal: ApiKeyPrincipal | AuthFailure): Awaitable<Decision> {
    if (isAuthenticated(principal)) return rateLimiter.decide(principal.subject, principal.limits);
    return decideByAddress(request);
  }

  function decideByAddress(request: Request): Awaitable<Decision> {
    const subject = addresses.subjectOf(request.remoteAddress, () => request.headers.get("x-forwarded-for"));
    return rateLimiter.decide(subject, plans.anonymous);
  }

  /** A page or an unknown path. */
  function handleStaticRequest(request: Request): Awaitable<Response> {
    const route = staticRoutes.get(request.path);
    if (route?.isRateLimited === false) return route.respond(request, "");
    return andThen(decideByAddress(request), (decision) => {
      if (decision.outcome !== "allowed") return rateLimitedResponse(decision);
      const headerLines = rateLimitLines(decision);
      return route?.respond(request, headerLines) ?? errorResponse(NOT_FOUND, headerLines);
    });
  }

  /** An error of authentication or of the rate limiter: there is no decision. */
  function handleFailure(error: unknown, requestId: string): Response {
    errorLog.report("authentication or rate limit", error, requestId);
    const limit = plans.anonymous.perMinute;
    const resetAt = Math.ceil(clock.now() / 1000) + 60;
    const decision = { outcome: "limited", limit, remaining: 0, resetAt, retryAfter: 0 } as const;
    return internalErrorResponse(rateLimitLines(decision));
  }

  return {
    handle(request) {
      const requestId = requestIdOf(request);
      const response = recover(
        () => (isApiPath(request.path) ? handleApiRequest(request, requestId) : handleStaticRequest(request)),
        (error) => handleFailure(error, requestId),
      );
      return andThen(response, (handled) => withRequestId(handled, requestId));
    },
    handleError(error) {
      const requestId = newRequestId();
      errorLog.report("request handler", error, requestId);
      return withRequestId(internalErrorResponse(), requestId);
    },
    protocolError: respondToProtocolError,
  };
}

function respondToProtocolError(status: ProtocolErrorStatus): Response {
  return withRequestId(protocolErrorResponse(status), newRequestId());
}

/** Responds until the app is ready. */
export const startupHandler: RequestHandler = {
  handle: (request) => withRequestId(unavailableResponse(1), requestIdOf(request)),
  handleError: () => withRequestId(internalErrorResponse(), newRequestId()),
  protocolError: respondToProtocolError,
};
