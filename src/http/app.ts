import type { ApiKeyPrincipal, Authenticator, AuthFailure } from "../auth/authenticator.ts";
import type { Addresses } from "../auth/client-address.ts";
import { NOT_FOUND } from "../contract/errors.ts";
import { andThen, type Awaitable, recover } from "../domain/awaitable.ts";
import type { Plans } from "../domain/plans.ts";
import type { RateLimiter } from "../domain/ports.ts";
import type { Decision } from "../domain/rate-limit.ts";
import type { RequestHandler } from "../http1/index.ts";
import type { Request } from "../http1/index.ts";
import type { Response } from "../http1/index.ts";
import type { Log } from "../log.ts";
import { createDispatch, createEndpoints, type EndpointOptions, rawInputOf } from "./dispatch.ts";
import { ErrorLog } from "./error-log.ts";
import {
  authFailureResponse,
  errorResponse,
  internalErrorResponse,
  isAuthenticated,
  protocolErrorResponse,
  rateLimitedResponse,
  rateLimitLines,
  unavailableResponse,
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
  function handleApiRequest(request: Request): Awaitable<Response> {
    return andThen(authenticator.authenticate(request.headers.get("authorization")), (principal) =>
      andThen(decide(request, principal), (decision) => {
        if (decision.outcome !== "allowed") return rateLimitedResponse(decision);
        if (!isAuthenticated(principal)) return authFailureResponse(principal, decision);

        const route = router.find(request.path);
        if (route === undefined) return errorResponse(NOT_FOUND, rateLimitLines(decision));
        const endpoint = route.endpoints.get(request.method);
        if (endpoint === undefined) return otherMethodResponse(request, route, decision);

        const rawInput = rawInputOf(request, route, endpoint);
        return dispatch({ endpoint, request, principal, decision, rawInput });
      }),
    );
  }

  /** A request without a valid key counts against the limits of its IP address. */
  function decide(request: Request, principal: ApiKeyPrincipal | AuthFailure): Awaitable<Decision> {
    if (isAuthenticated(principal)) return rateLimiter.decide(principal.subject, principal.limits);
    const subject = addresses.subjectOf(request.remoteAddress, () => request.headers.get("x-forwarded-for"));
    return rateLimiter.decide(subject, plans.anonymous);
  }

  /** An error of authentication or of the rate limiter: no decision is known. */
  function handleApiError(error: unknown): Response {
    errorLog.report("authentication or rate limit", error);
    const limit = plans.anonymous.perMinute;
    const resetAt = Math.ceil(clock.now() / 1000) + 60;
    const decision = { outcome: "limited", limit, remaining: 0, resetAt, retryAfter: 0 } as const;
    return internalErrorResponse(rateLimitLines(decision));
  }

  return {
    handle(request) {
      if (isApiPath(request.path)) return recover(() => handleApiRequest(request), handleApiError);
      return staticRoutes.get(request.path)?.(request) ?? errorResponse(NOT_FOUND);
    },
    handleError(error) {
      log.error("request failed outside of the API", { error });
      return internalErrorResponse();
    },
    protocolError: protocolErrorResponse,
  };
}

/** Responds until the app is ready. */
export const startupHandler: RequestHandler = {
  handle: () => unavailableResponse(1),
  handleError: () => internalErrorResponse(),
  protocolError: protocolErrorResponse,
};
