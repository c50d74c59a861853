import { INTERNAL_ERROR, methodNotAllowed, isRejection } from "../api/errors.ts";
import { andThen, type Awaitable } from "../api/awaitable.ts";
import type { ErrorLog } from "../observe/event-reports.ts";
import { newRequestId, requestIdOf } from "../api/request-id.ts";
import { protocolErrorResponse } from "../api/protocol-errors.ts";
import { withRequestId } from "../api/responses.ts";
import type { Request, RequestHandler, Response } from "../http1/index.ts";
import type { AdminApi } from "./admin-api.ts";
import { ADMIN_API } from "./operations.ts";
import type { AdminAuthentication } from "./authentication.ts";
import { type ReadinessChecks, readyResponse, sharedChecks } from "./health.ts";
import { isFromOtherOrigin, isOwnHost } from "./request-origin.ts";
import { ADMIN_PATH_NOT_FOUND, FORBIDDEN_HOST, FORBIDDEN_ORIGIN } from "./rejections.ts";
import { adminErrorResponse, adminTextResponse, PAGE_LINES } from "./responses.ts";

/** The console: its pages and their scripts and styles. They respond without a token, and contain no data. */
export interface AdminPages {
  /** Undefined if there is no such page. Security headers are added to what it returns. */
  respond(request: Request): Awaitable<Response | undefined>;
}

/** Renders the metrics in a format that the client accepts. */
export type MetricsSource = (accept: string | null) => {
  readonly contentType: string;
  readonly body: string;
};

export interface AdminAppOptions {
  readonly api: AdminApi;
  readonly authentication: AdminAuthentication;
  readonly checks: ReadinessChecks;
  readonly errorLog: ErrorLog;
  /** Names by which browsers may address the listener, in lower case. */
  readonly hostnames: readonly string[];
  readonly pages?: AdminPages | undefined;
  readonly metrics?: MetricsSource | undefined;
  /** Whether /metrics responds without a token. */
  readonly areMetricsPublic: boolean;
}

const SAFE_METHODS = new Set(["GET", "HEAD"]);
const ALLOWED = "GET, HEAD";

/** The handler of the operator's listener: health, metrics, the admin API and the console. */
export function createAdminApp(options: AdminAppOptions): RequestHandler {
  const { api, authentication, errorLog, hostnames, pages, metrics, areMetricsPublic } = options;
  const checks = sharedChecks(options.checks);

  function respond(request: Request, requestId: string): Awaitable<Response> {
    const { path } = request;
    if (ADMIN_API.has(path)) {
      return isOwnHost(request, hostnames)
        ? api.handle(request, requestId)
        : adminErrorResponse(FORBIDDEN_HOST);
    }
    if (!SAFE_METHODS.has(request.method)) {
      return adminErrorResponse(methodNotAllowed(request.method, ALLOWED), { Allow: ALLOWED });
    }
    // Probes reach the listener by whatever name their orchestrator gives it, and learn nothing.
    if (path === "/livez") return adminTextResponse(200, "ok\n");
    if (path === "/readyz") return readyResponse(request, checks);
    if (!isOwnHost(request, hostnames)) return adminErrorResponse(FORBIDDEN_HOST);
    if (path === "/metrics" && metrics) return respondWithMetrics(request, metrics);
    return andThen(pages?.respond(request), (page) =>
      page
        ? { ...page, headerLines: page.headerLines + PAGE_LINES }
        : adminErrorResponse(ADMIN_PATH_NOT_FOUND),
    );
  }

  function respondWithMetrics(request: Request, render: MetricsSource): Response {
    if (isFromOtherOrigin(request)) return adminErrorResponse(FORBIDDEN_ORIGIN);
    if (!areMetricsPublic) {
      const actor = authentication.authenticate(request);
      if (isRejection(actor)) return adminErrorResponse(actor);
    }
    const { contentType, body } = render(request.headers.get("accept"));
    return adminTextResponse(200, body, contentType);
  }

  return {
    handle(request) {
      const requestId = requestIdOf(request);
      return andThen(respond(request, requestId), (response) => withRequestId(response, requestId));
    },
    handleError(error) {
      const requestId = newRequestId();
      errorLog.report("admin request handler", error, requestId);
      return withRequestId(adminErrorResponse(INTERNAL_ERROR), requestId);
    },
    protocolError: (status) => withRequestId(protocolErrorResponse(status), newRequestId()),
  };
}
