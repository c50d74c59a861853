import { INTERNAL_ERROR, methodNotAllowed, serviceUnavailable, Unavailable } from "../contract/errors.ts";
import { andThen, type Awaitable, recover } from "../domain/awaitable.ts";
import type { ErrorLog } from "../http/error-log.ts";
import { withTimeout } from "../http/request-timeout.ts";
import type { Request, Response } from "../http1/index.ts";
import type { AdminAuthentication, SignInRejection } from "./authentication.ts";
import { giveWay } from "../event-loop.ts";
import { ADMIN_BASE_PATH, type AdminOperation } from "./contract/operation.ts";
import {
  type AdminContext,
  type AdminHandlers,
  type AnyHandler,
  isAdminRejection,
  WithHeaders,
} from "./handler.ts";
import { ADMIN_OPERATIONS, type AdminOperationId } from "./operations.ts";
import { adminOpenApiJson } from "./openapi.ts";
import { ADMIN_PATH_NOT_FOUND, FORBIDDEN_ORIGIN } from "./rejections.ts";
import { isFromOtherOrigin } from "./request-origin.ts";
import {
  adminEmptyResponse,
  adminErrorResponse,
  adminJsonText,
  adminResponse,
  retryLater,
} from "./responses.ts";
import { AdminRouter } from "./router.ts";
import { type AnyInput, validate } from "./validation.ts";

export interface AdminApiOptions {
  readonly authentication: AdminAuthentication;
  readonly handlers: AdminHandlers;
  readonly errorLog: ErrorLog;
}

const OPENAPI_PATH = `${ADMIN_BASE_PATH}/openapi.json`;

/** Whether a path is below the base path, whether or not a route exists. */
export function isApiPath(path: string): boolean {
  return path.startsWith(`${ADMIN_BASE_PATH}/`) || path === ADMIN_BASE_PATH;
}

interface Call {
  readonly id: AdminOperationId;
  readonly operation: AdminOperation;
  readonly context: AdminContext;
  readonly requestId: string;
}

/** check the origin → authenticate → route → validate → handler → respond */
export class AdminApi {
  readonly #options: AdminApiOptions;
  readonly #router = new AdminRouter();
  #openApi: string | undefined;

  constructor(options: AdminApiOptions) {
    this.#options = options;
  }

  handle(request: Request, requestId: string): Awaitable<Response> {
    if (isFromOtherOrigin(request)) return adminErrorResponse(FORBIDDEN_ORIGIN);
    const match = this.#router.find(request.path);
    const id = match?.route.operations.get(request.method);
    const operation: AdminOperation | undefined = id && ADMIN_OPERATIONS[id];
    const actor = operation?.needsNoToken
      ? ({ kind: "console", name: request.remoteAddress } as const)
      : this.#options.authentication.authenticate(request);
    if (isAdminRejection(actor)) return signInResponse(actor);

    if (request.path === OPENAPI_PATH) return this.#respondWithOpenApi(request);
    if (match === undefined) return adminErrorResponse(ADMIN_PATH_NOT_FOUND);
    if (id === undefined || operation === undefined) return otherMethod(request, match.route.allowed);
    const call = { id, operation, context: { actor, request }, requestId };
    return recover(
      () =>
        andThen(validate(request, operation, match.identifier), (input) =>
          isAdminRejection(input) ? adminErrorResponse(input) : this.#execute(input, call),
        ),
      (error) => this.#failed(error, call),
    );
  }

  #execute(input: AnyInput, { id, operation, context }: Call): Awaitable<Response> {
    // The input was validated for this operation, which is what the type of its handler says.
    const handler = this.#options.handlers[id] as unknown as AnyHandler;
    const result = handler(input, context);
    if (!(result instanceof Promise)) return responseOf(result, operation);
    return withTimeout(
      result.then(async (value) => {
        // A long response takes milliseconds to write.
        await giveWay();
        return responseOf(value, operation);
      }),
    );
  }

  #failed(error: unknown, { id, requestId }: Call): Response {
    this.#options.errorLog.report(`admin ${id}`, error, requestId);
    if (!(error instanceof Unavailable)) return adminErrorResponse(INTERNAL_ERROR);
    return retryLater(serviceUnavailable(error.retryAfterSeconds), error.retryAfterSeconds);
  }

  #respondWithOpenApi(request: Request): Response {
    if (request.method !== "GET" && request.method !== "HEAD") return otherMethod(request, "GET, HEAD");
    this.#openApi ??= adminOpenApiJson();
    return adminJsonText(this.#openApi);
  }
}

function responseOf(result: unknown, { success }: AdminOperation): Response {
  if (isAdminRejection(result)) {
    return "retryAfterSeconds" in result
      ? retryLater(result, Number(result.retryAfterSeconds))
      : adminErrorResponse(result);
  }
  const { body, headers } = result instanceof WithHeaders ? result : new WithHeaders(result, {});
  return success.body === undefined
    ? adminEmptyResponse(headers)
    : adminResponse(success.status, body, headers);
}

export function signInResponse(rejection: SignInRejection): Response {
  return "retryAfterSeconds" in rejection
    ? retryLater(rejection, rejection.retryAfterSeconds)
    : adminErrorResponse(rejection);
}

/** OPTIONS, or a method that the path does not allow. No page of another origin is ever allowed anything. */
function otherMethod({ method }: Request, allowed: string): Response {
  if (method === "OPTIONS") return adminEmptyResponse({ Allow: allowed });
  return adminErrorResponse(methodNotAllowed(method, allowed), { Allow: allowed });
}
