import { andThen, type Awaitable } from "../runtime/awaitable.ts";
import { takingTurns } from "../runtime/scheduler.ts";
import { type CallSteps, dispatch, handlerOf, type OperationCall } from "../api/dispatch.ts";
import { PROTOCOL_ERRORS, protocolErrorResponse } from "../api/protocol-errors.ts";
import { newRequestId, requestIdOf, withRequestId } from "../api/request-ids.ts";
import { emptyResponse, errorResponse, headerLinesOf, jsonResponse, NO_STORE } from "../api/responses.ts";
import {
  type ErrorTable,
  INTERNAL_ERROR,
  methodNotAllowed,
  Rejection,
  rejectionOf,
  Unavailable,
} from "../api/errors.ts";
import { READ_ALLOWED, READ_METHODS } from "../api/api.ts";
import { toJson } from "../api/json.ts";
import {
  headerLine,
  type Request,
  RECEIVE_TIMEOUT_SECONDS,
  type RequestHandler,
  type Response,
  type Status,
} from "../http1/index.ts";
import { ErrorLog } from "../observe/error-log.ts";
import { METRICS_TYPE } from "../observe/exposition.ts";
import { ADMIN_API } from "./api.ts";
import {
  ADMIN_ERRORS,
  ADMIN_PATH_NOT_FOUND,
  FORBIDDEN_HOST,
  FORBIDDEN_ORIGIN,
  operatorsUnknown,
} from "./errors.ts";
import { UNAUTHENTICATED_BODY_SECONDS } from "./admin-listener.ts";
import { MAX_ADMIN_BODY_BYTES, MAX_OPEN_BODY_BYTES } from "../domain/size-limits.ts";
import { createConsole } from "./console/assets.ts";
import { callRejection } from "./sign-in/credential-rules.ts";
import { adminOpenApiJson } from "./openapi.ts";
import { runningServerHandlers } from "./handlers/running-server-handlers.ts";
import { dataHandlers } from "./handlers/data-handlers.ts";
import { overviewHandlers } from "./handlers/overview.ts";
import type { AdminHandlers, RequestContext } from "./handlers/context.ts";
import { sessionHandlers } from "./handlers/sessions.ts";
import type { AdminOperation, AdminOperationId } from "./operations.ts";
import { isFromOtherOrigin, isOwnHost } from "./own-origin.ts";
import { readinessChecks, readinessOf } from "./readiness.ts";
import { withOperatorReads, type Services } from "./services.ts";
import type { Identity } from "./sign-in/admin-authentication.ts";

const COMMON_HEADERS = {
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
};
/** The headers of every response except pages. The policy allows nothing, and pages need more. */
const API_LINES =
  headerLinesOf({
    ...COMMON_HEADERS,
    "Content-Security-Policy":
      "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  }) + NO_STORE;
/** The headers of pages. The policy allows scripts, styles and requests of this origin only, and nothing inline. */
const PAGE_LINES = headerLinesOf({
  ...COMMON_HEADERS,
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
});

const PLAIN_TEXT = "text/plain; charset=utf-8";

function textResponse(status: Status, body: string, contentType = PLAIN_TEXT): Response {
  return { status, headerLines: headerLine("Content-Type", contentType) + API_LINES, body };
}

const CHALLENGE_LINE = headerLine("WWW-Authenticate", 'Bearer realm="petstore admin"');

function reject(rejection: Rejection, headerLines = ""): Response {
  const { code, problems } = rejection;
  const errors: ErrorTable = ADMIN_ERRORS;
  const challenge = errors[code]?.status === 401 ? CHALLENGE_LINE : "";
  return errorResponse(errors, rejection, {
    headerLines: API_LINES + challenge + headerLines,
    members: problems.length === 0 ? "" : `,"problems":${JSON.stringify(problems)}`,
  });
}

function rejectMethod(method: string, allowed: string): Response {
  return reject(methodNotAllowed(method, allowed), headerLine("Allow", allowed));
}

/**
 * Responds to OPTIONS, and to methods that the path does not allow. Pages of other origins are never allowed anything.
 */
function otherMethod({ method }: Request, allowed: string): Response {
  if (method !== "OPTIONS") return rejectMethod(method, allowed);
  return emptyResponse(204, API_LINES + headerLine("Allow", allowed));
}

interface AdminCall extends OperationCall {
  readonly id: AdminOperationId;
  readonly operation: AdminOperation;
  readonly context: RequestContext;
}

/** What `/metrics` needs, as if it were an operation. */
const READ_METRICS = { method: "GET", role: "metrics" } as const;
const OPENAPI_PATH = `${ADMIN_API.basePath}/openapi.json`;

/** The handler of the listener for operators: health, metrics, the admin API and the console. */
export function createAdminApp(services: Services): RequestHandler {
  const errorLog = new ErrorLog(services.log);
  const app = new AdminApp(services, errorLog);
  return {
    handle(request) {
      const requestId = requestIdOf(request);
      return andThen(app.respond(request, requestId), (response) => withRequestId(response, requestId));
    },
    handleError(error) {
      const requestId = newRequestId();
      errorLog.report("admin request handler", error, { requestId });
      return withRequestId(reject(INTERNAL_ERROR), requestId);
    },
    protocolError(status) {
      const response =
        status === 408 ? errorResponse(PROTOCOL_ERRORS, REQUEST_TOO_SLOW) : protocolErrorResponse(status);
      return withRequestId(response, newRequestId());
    },
  };
}

class AdminApp {
  readonly #services: Services;
  readonly #ready: ReturnType<typeof readinessOf>;
  readonly #pages: ReturnType<typeof createConsole>;
  readonly #steps: CallSteps<AdminCall, Response>;
  /** Requests that arrive together are handled one by one, with those of clients in between. */
  readonly #turn = takingTurns();
  readonly #errorLog: ErrorLog;
  #openApi: string | undefined;

  constructor(services: Services, errorLog: ErrorLog) {
    this.#services = services;
    this.#errorLog = errorLog;
    this.#pages = createConsole(services.isDemo ? "demo" : services.environment);
    this.#ready = readinessOf(readinessChecks(services));
    const handlers: AdminHandlers = {
      ...sessionHandlers(services),
      ...overviewHandlers(withOperatorReads(services)),
      ...runningServerHandlers(services),
      ...dataHandlers(services),
    };
    this.#steps = {
      reauthenticate: async (call) => {
        const { operation, request } = call;
        const identity = await this.#identify(request, operation);
        return identity instanceof Rejection
          ? identity
          : { ...call, context: this.#contextOf(request, identity) };
      },
      async handle(input, call) {
        const { id, context } = call;
        const result = await handlerOf<AdminOperationId, [RequestContext], unknown>(handlers, id)(
          input,
          context,
        );
        return result instanceof Rejection ? result : respond(result, call);
      },
    };
  }

  respond(request: Request, requestId: string): Awaitable<Response> {
    const { path, method } = request;
    const isApi = ADMIN_API.has(path);
    if (!isApi && !READ_METHODS.has(method)) return rejectMethod(method, READ_ALLOWED);
    // Probes reach the listener by whatever name their orchestrator uses, and get no data.
    if (path === "/livez") return textResponse(200, "ok\n");
    if (path === "/readyz") return this.#respondWithReadiness(request);
    if (!isOwnHost(request, this.#services.admin.hostnames)) return reject(FORBIDDEN_HOST);
    if (isApi) return this.#respondWithApi(request, requestId);
    if (path === "/metrics") return this.#respondWithMetrics(request);
    return this.#pages(request).then((page) =>
      page ? { ...page, headerLines: page.headerLines + PAGE_LINES } : reject(ADMIN_PATH_NOT_FOUND),
    );
  }

  /**
   * check the origin → authenticate → check role and rate → dispatch: validate → after a body, authenticate and check
   * the role again → handler
   */
  async #respondWithApi(request: Request, requestId: string): Promise<Response> {
    if (isFromOtherOrigin(request)) return reject(FORBIDDEN_ORIGIN);
    await this.#turn();
    const match = ADMIN_API.find(request.path);
    const id = match?.route.operations.get(request.method);
    const operation: AdminOperation | undefined = id && ADMIN_API.operations[id];
    const identity = await this.#identify(request, operation);
    if (identity instanceof Rejection) return reject(identity);
    const principal = "principal" in identity ? identity.principal : undefined;
    const { operatorRates } = this.#services;
    const limited = principal && (await operatorRates.take(principal.id, request, operation?.cost));
    if (limited) return reject(limited);

    if (request.path === OPENAPI_PATH) return this.#respondWithOpenApi(request);
    if (match === undefined) return reject(ADMIN_PATH_NOT_FOUND);
    if (id === undefined || operation === undefined) return otherMethod(request, match.route.allowed);
    const { identifier } = match;
    const context = this.#contextOf(request, identity);
    const maxBodyBytes = operation.needsNoToken ? MAX_OPEN_BODY_BYTES : MAX_ADMIN_BODY_BYTES;
    const hasWaited = true;
    const call = { id, operation, request, requestId, identifier, maxBodyBytes, hasWaited, context };
    try {
      const response = await dispatch(call, this.#steps);
      return response instanceof Rejection ? reject(response) : response;
    } catch (error) {
      this.#errorLog.report(`admin ${id}`, error, call);
      return reject(rejectionOf(error));
    }
  }

  /** Finds out who sends the request. For an operation that needs no token, the result has only the actor. */
  #identify(request: Request, operation?: AdminOperation) {
    const { remoteAddress: name } = request;
    if (operation?.needsNoToken) return { actor: { kind: "console", name } } as const;
    return this.#authenticate(request, operation ?? { method: "GET" });
  }

  #contextOf(
    request: Request,
    { actor, ...rest }: Pick<Identity, "actor"> & Partial<Identity>,
  ): RequestContext {
    return { by: { actor, at: this.#services.clock.now() }, ...rest, request, responseHeaders: {} };
  }

  async #authenticate(request: Request, operation: Parameters<typeof callRejection>[1]) {
    const identity = await this.#services.authentication.authenticate(request).catch((error: unknown) => {
      if (error instanceof Unavailable) return operatorsUnknown(error.retryAfterSeconds);
      throw error;
    });
    if (identity instanceof Rejection) return identity;
    request.markAuthenticated();
    return callRejection(identity.principal, operation) ?? identity;
  }

  #respondWithOpenApi(request: Request): Response {
    if (!READ_METHODS.has(request.method)) return otherMethod(request, READ_ALLOWED);
    this.#openApi ??= adminOpenApiJson();
    return jsonResponse(200, API_LINES, this.#openApi);
  }

  async #respondWithReadiness(request: Request): Promise<Response> {
    const { status, body } = await this.#ready(request);
    return textResponse(status, body);
  }

  async #respondWithMetrics(request: Request): Promise<Response> {
    const { admin, metrics } = this.#services;
    if (isFromOtherOrigin(request)) return reject(FORBIDDEN_ORIGIN);
    await this.#turn();
    const identity = admin.areMetricsPublic ? undefined : await this.#authenticate(request, READ_METRICS);
    if (identity instanceof Rejection) return reject(identity);
    const limited = identity && (await this.#services.operatorRates.take(identity.principal.id, request));
    if (limited) return reject(limited);
    return textResponse(200, metrics.scrape(), METRICS_TYPE);
  }
}

const REQUEST_TOO_SLOW = new Rejection(
  "request_timeout",
  `The request did not arrive within ${RECEIVE_TIMEOUT_SECONDS} seconds, or its body without a valid token within ${UNAUTHENTICATED_BODY_SECONDS} seconds.`,
);

function respond(result: unknown, { operation: { success }, context }: AdminCall): Response {
  const lines = API_LINES + headerLinesOf(context.responseHeaders);
  if (success.body === undefined) return emptyResponse(204, lines);
  return jsonResponse(success.status, lines, toJson(result));
}
