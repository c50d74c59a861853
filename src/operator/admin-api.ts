import type { Awaitable } from "../api/awaitable.ts";
import { type Call, dispatch, type Front } from "../api/dispatch.ts";
import {
  INTERNAL_ERROR,
  isRejection,
  methodNotAllowed,
  serviceUnavailable,
  Unavailable,
} from "../api/errors.ts";
import { parseJson } from "../api/json.ts";
import { yieldToEventLoop } from "../event-loop.ts";
import type { Request, Response } from "../http1/index.ts";
import type { ErrorLog } from "../observe/event-reports.ts";
import type { AdminAuthentication } from "./authentication.ts";
import { MAX_BODY_BYTES, MAX_OPEN_BODY_BYTES } from "./contract/errors.ts";
import type { AdminOperation } from "./contract/operation.ts";
import { type AdminHandlers, type AnyHandler, type SessionContext, WithHeaders } from "./handler.ts";
import { adminOpenApiJson } from "./openapi.ts";
import { ADMIN_API, type AdminOperationId } from "./operations.ts";
import { ADMIN_PATH_NOT_FOUND, FORBIDDEN_ORIGIN } from "./rejections.ts";
import { isFromOtherOrigin } from "./request-origin.ts";
import { adminEmptyResponse, adminErrorResponse, adminJsonText, adminResponse } from "./responses.ts";

export interface AdminApiOptions {
  readonly authentication: AdminAuthentication;
  readonly handlers: AdminHandlers;
  readonly errorLog: ErrorLog;
}

const OPENAPI_PATH = `${ADMIN_API.basePath}/openapi.json`;

interface AdminCall extends Call {
  readonly id: AdminOperationId;
  readonly operation: AdminOperation;
  readonly context: SessionContext;
}

/** check the origin → authenticate → route → dispatch: validate → handler → respond */
export class AdminApi {
  readonly #authentication: AdminAuthentication;
  readonly #front: Front<AdminCall>;
  #openApi: string | undefined;

  constructor({ authentication, handlers, errorLog }: AdminApiOptions) {
    this.#authentication = authentication;
    this.#front = {
      maxBodyBytes: ({ operation }) => (operation.needsNoToken ? MAX_OPEN_BODY_BYTES : MAX_BODY_BYTES),
      parse: parseJson,
      // The input was validated for this operation, which is what the type of its handler says.
      execute: (input, { id, context }) => (handlers[id] as unknown as AnyHandler)(input, context),
      succeed,
      reject: (rejection) => adminErrorResponse(rejection),
      fail(error, { id, requestId }) {
        errorLog.report(`admin ${id}`, error, requestId);
        if (!(error instanceof Unavailable)) return adminErrorResponse(INTERNAL_ERROR);
        const { retryAfterSeconds } = error;
        return adminErrorResponse({ ...serviceUnavailable(retryAfterSeconds), retryAfterSeconds });
      },
    };
  }

  handle(request: Request, requestId: string): Awaitable<Response> {
    if (isFromOtherOrigin(request)) return adminErrorResponse(FORBIDDEN_ORIGIN);
    const match = ADMIN_API.find(request.path);
    const id = match?.route.operations.get(request.method);
    const operation: AdminOperation | undefined = id && ADMIN_API.operations[id];
    const actor = operation?.needsNoToken
      ? ({ kind: "console", name: request.remoteAddress } as const)
      : this.#authentication.authenticate(request);
    if (isRejection(actor)) return adminErrorResponse(actor);

    if (request.path === OPENAPI_PATH) return this.#respondWithOpenApi(request);
    if (match === undefined) return adminErrorResponse(ADMIN_PATH_NOT_FOUND);
    if (id === undefined || operation === undefined) return otherMethod(request, match.route.allowed);
    const { identifier } = match;
    const call = { id, operation, request, requestId, identifier, context: { actor, request } };
    return dispatch(call, this.#front);
  }

  #respondWithOpenApi(request: Request): Response {
    if (request.method !== "GET" && request.method !== "HEAD") return otherMethod(request, "GET, HEAD");
    this.#openApi ??= adminOpenApiJson();
    return adminJsonText(this.#openApi);
  }
}

async function succeed(result: unknown, { operation: { success } }: AdminCall): Promise<Response> {
  // A long response takes milliseconds to write.
  await yieldToEventLoop();
  const { body, headers } = result instanceof WithHeaders ? result : new WithHeaders(result, {});
  return success.body === undefined
    ? adminEmptyResponse(headers)
    : adminResponse(success.status, body, headers);
}

/** OPTIONS, or a method that the path does not allow. No page of another origin is ever allowed anything. */
function otherMethod({ method }: Request, allowed: string): Response {
  if (method === "OPTIONS") return adminEmptyResponse({ Allow: allowed });
  return adminErrorResponse(methodNotAllowed(method, allowed), { Allow: allowed });
}
