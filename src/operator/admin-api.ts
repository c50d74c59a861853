import type { Awaitable } from "../api/awaitable.ts";
import { type AnyInput, type Call, dispatch, type Front } from "../api/dispatch.ts";
import {
  INTERNAL_ERROR,
  isRejection,
  methodNotAllowed,
  type Rejection,
  serviceUnavailable,
  Unavailable,
} from "../api/errors.ts";
import { parseJson, toJson } from "../api/json.ts";
import { errorResponse, headerLinesOf, type Headers } from "../api/responses.ts";
import type { Actor } from "../domain/audit.ts";
import { yieldToEventLoop } from "../event-loop.ts";
import { headerLine, type Request, type Response, type Status } from "../http1/index.ts";
import type { ErrorLog } from "../observe/event-reports.ts";
import {
  ADMIN_ERRORS,
  ADMIN_PATH_NOT_FOUND,
  type AdminErrorCode,
  FORBIDDEN_ORIGIN,
  MAX_BODY_BYTES,
  MAX_OPEN_BODY_BYTES,
} from "./errors.ts";
import { adminOpenApiJson } from "./openapi.ts";
import {
  ADMIN_API,
  type AdminInput,
  type AdminOperation,
  type AdminOperationId,
  type AdminRejectionOf,
  type ResponseOf,
} from "./operations.ts";
import { type AdminAuthentication, isFromOtherOrigin } from "./sign-in.ts";

/** Who calls an operation. */
export interface AdminContext {
  /** Of an operation that needs no token, what it would be with one. */
  readonly actor: Actor;
}

/** An operation on the session needs the request: its cookie is the session. */
export interface SessionContext extends AdminContext {
  readonly request: Request;
}
type ContextOf<Id> = Id extends `${string}Session` ? SessionContext : AdminContext;

/** A success that sets headers. */
export class WithHeaders<T> {
  constructor(
    readonly body: T,
    readonly headers: Readonly<Record<string, string>>,
  ) {}
}

type Result<Id extends AdminOperationId> =
  ResponseOf<Id> | WithHeaders<ResponseOf<Id>> | AdminRejectionOf<Id>;

export type AdminHandler<Id extends AdminOperationId> = (
  input: AdminInput<Id>,
  context: ContextOf<Id>,
) => Awaitable<Result<Id>>;

/** Every operation has a handler. */
export type AdminHandlers = { readonly [Id in AdminOperationId]: AdminHandler<Id> };

/** The handler of any operation, for an input that was validated for that operation. */
export type AnyHandler = (input: AnyInput, context: AdminContext) => Awaitable<unknown>;

/** On every response of the admin listener but its pages, which need more than nothing. */
const NOTHING_ALLOWED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/** The console's scripts, styles and requests, of this origin only, and nothing inline. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const COMMON = {
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
};
const API_LINES = headerLinesOf({
  ...COMMON,
  "Content-Security-Policy": NOTHING_ALLOWED,
  "Cache-Control": "no-store",
});
/** Pages say themselves how long they can be cached. */
export const PAGE_LINES = headerLinesOf({ ...COMMON, "Content-Security-Policy": PAGE_POLICY });

const JSON_TYPE = headerLine("Content-Type", "application/json");

export function adminResponse(status: Status, body: unknown, headers: Headers = {}): Response {
  return { status, headerLines: JSON_TYPE + API_LINES + headerLinesOf(headers), body: toJson(body) };
}

export function adminJsonText(body: string): Response {
  return { status: 200, headerLines: JSON_TYPE + API_LINES, body };
}

export function adminTextResponse(
  status: Status,
  body: string,
  contentType = "text/plain; charset=utf-8",
): Response {
  return { status, headerLines: headerLine("Content-Type", contentType) + API_LINES, body };
}

export function adminEmptyResponse(headers: Headers = {}): Response {
  return { status: 204, headerLines: API_LINES + headerLinesOf(headers), body: null };
}

export function adminErrorResponse(rejection: Rejection, headers: Headers = {}): Response {
  const { retryAfterSeconds } = rejection;
  const isUnauthenticated = ADMIN_ERRORS[rejection.code as AdminErrorCode].status === 401;
  const lines = headerLinesOf({
    ...(isUnauthenticated && { "WWW-Authenticate": CHALLENGE }),
    ...headers,
    ...(retryAfterSeconds !== undefined && { "Retry-After": String(retryAfterSeconds) }),
  });
  return errorResponse(ADMIN_ERRORS, rejection, API_LINES + lines);
}

const CHALLENGE = 'Bearer realm="petstore admin"';

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
