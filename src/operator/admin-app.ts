import { andThen, type Awaitable } from "../api/awaitable.ts";
import { INTERNAL_ERROR, isRejection, methodNotAllowed } from "../api/errors.ts";
import { newRequestId, requestIdOf } from "../api/dispatch.ts";
import { protocolErrorResponse, withRequestId } from "../api/responses.ts";
import type { Request, RequestHandler, Response } from "../http1/index.ts";
import type { ErrorLog } from "../observe/event-reports.ts";
import { type AdminApi, adminErrorResponse, adminTextResponse, PAGE_LINES } from "./admin-api.ts";
import { ADMIN_PATH_NOT_FOUND, FORBIDDEN_HOST, FORBIDDEN_ORIGIN } from "./errors.ts";
import { ADMIN_API } from "./operations.ts";
import { type AdminAuthentication, isFromOtherOrigin, isOwnHost } from "./sign-in.ts";

/** Rejects or returns false while the server is not ready, by the name of the check. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<boolean> | boolean>>;

/** Shorter than the default timeout of a Kubernetes probe, which is a second. */
const CHECK_TIMEOUT_MS = 800;

/**
 * Checks that several requests share while they run. Whoever can reach the listener can send any number of requests
 * without a token, and the database has a bounded number of connections.
 */
export function sharedChecks(checks: ReadinessChecks): ReadinessChecks {
  return Object.fromEntries(
    Object.entries(checks).map(([name, check]) => [name, shared(() => passes(check))]),
  );
}

function shared(check: () => Promise<boolean>): () => Promise<boolean> {
  let running: Promise<boolean> | undefined;
  return () => (running ??= check().finally(() => (running = undefined)));
}

/**
 * 200 if every check passes, 503 otherwise, in the format of Kubernetes' own /readyz: `?verbose` lists the checks, and
 * `?exclude=NAME` leaves one out.
 */
export async function readyResponse(request: Request, checks: ReadinessChecks): Promise<Response> {
  const query = new URLSearchParams(request.query);
  const excluded = query.getAll("exclude");
  const included = Object.entries(checks).filter(([name]) => !excluded.includes(name));
  const results = await Promise.all(
    included.map(async ([name, check]) => [name, await passes(check)] as const),
  );
  const isReady = results.every(([, isPassed]) => isPassed);
  const isVerbose = query.has("verbose") || !isReady;
  const lines = results.map(([name, isPassed]) => (isPassed ? `[+]${name} ok\n` : `[-]${name} failed\n`));
  const verdict = isReady ? "ok\n" : "not ready\n";
  return adminTextResponse(isReady ? 200 : 503, isVerbose ? lines.join("") + verdict : verdict);
}

async function passes(check: () => Promise<boolean> | boolean): Promise<boolean> {
  let timer: Timer | undefined;
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), CHECK_TIMEOUT_MS);
  });
  try {
    return await Promise.race([Promise.try(check), timeout]);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}

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
