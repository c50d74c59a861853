import type { ApiKeyPrincipal } from "../auth/authenticator.ts";
import { isRejection, operationRemoved, type Rejection, Unavailable } from "../contract/errors.ts";
import { OPERATIONS, type Operation, type OperationId } from "../contract/operations.ts";
import { andThen, type Awaitable, recover } from "../domain/awaitable.ts";
import type { Clock } from "../domain/ports.ts";
import type { Decision } from "../domain/rate-limit.ts";
import { etagOf } from "../etag.ts";
import { headerLine, type Request, RequestAborted, type Response } from "../http1/index.ts";
import { conditionalResponse } from "./conditional-requests.ts";
import { deprecationLines } from "./deprecation-headers.ts";
import type { ErrorLog } from "./error-log.ts";
import { createHandlers, type HandlerOptions } from "./handlers.ts";
import type { IdRange } from "./pet-json.ts";
import { withTimeout } from "./request-timeout.ts";
import { ResponseCache } from "./response-cache.ts";
import {
  ABORTED_RESPONSE,
  errorResponse,
  type Headers,
  headerLinesOf,
  internalErrorResponse,
  jsonResponse,
  rateLimitLines,
  unavailableResponse,
} from "./responses.ts";
import { identifierIn, type Route } from "./router.ts";
import { type OperationInput, validate } from "./validation.ts";

/** An operation and everything that serves it. */
export interface Endpoint {
  readonly id: OperationId;
  readonly operation: Operation;
  readonly handler: AnyHandler;
  readonly cache: ResponseCache | undefined;
  /** On every response of a deprecated operation; the argument is the identifier in the path. */
  readonly deprecationLines: ((identifier: string) => string) | undefined;
  readonly removal: { readonly at: number; readonly rejection: Rejection } | undefined;
}

/** A request for an endpoint. */
export interface Context {
  readonly endpoint: Endpoint;
  readonly request: Request;
  readonly requestId: string;
  readonly principal: ApiKeyPrincipal;
  readonly decision: Decision;
  /** The identifier in the path or, for an operation without one, the query string. */
  readonly rawInput: string;
}

interface AnySuccess {
  readonly body: string;
  readonly headers?: Headers;
  readonly etag?: string;
  readonly dependsOn?: IdRange;
}
/** The handler of any operation, for an input that was validated for that operation. */
type AnyHandler = (input: OperationInput, principal: ApiKeyPrincipal) => Awaitable<AnySuccess | Rejection>;

export function createEndpoints(options: HandlerOptions): Endpoint[] {
  const { petJson, baseUrl, responseCacheStatistics } = options;
  const handlers = createHandlers(options);
  return (Object.entries(OPERATIONS) as [OperationId, Operation][]).map(([id, operation]) => {
    const { deprecated } = operation;
    return {
      id,
      operation,
      handler: handlers[id] as unknown as AnyHandler,
      cache:
        id === "listPets" && petJson.changes
          ? new ResponseCache(petJson.changes, responseCacheStatistics)
          : undefined,
      deprecationLines: deprecated && deprecationLines(deprecated, baseUrl),
      removal: deprecated && { at: deprecated.sunset.getTime(), rejection: operationRemoved(deprecated) },
    };
  });
}

export function rawInputOf({ path, query }: Request, route: Route, { operation }: Endpoint): string {
  return operation.identifier ? identifierIn(path, route) : query;
}

export interface DispatchOptions {
  readonly clock: Clock;
  readonly errorLog: ErrorLog;
  readonly requestTimeoutMs: number | undefined;
}

export function createDispatch({ clock, errorLog, requestTimeoutMs }: DispatchOptions) {
  /** validate → handler → respond */
  return function dispatch(context: Context): Awaitable<Response> {
    const { endpoint, request, decision, rawInput } = context;
    const { removal } = endpoint;
    if (removal && clock.now() >= removal.at) return rejected(removal.rejection, context);
    const cached = endpoint.cache?.find(rawInput);
    if (cached) return conditionalResponse(request, cached, decision);
    return recover(
      () =>
        andThen(validate(context), (input) =>
          isRejection(input) ? rejected(input, context) : execute(input, context),
        ),
      (error) => failed(error, context),
    );
  };

  /** The timeout begins after the input has arrived: a slow client is not an error of the service. */
  function execute(input: OperationInput, context: Context): Awaitable<Response> {
    const response = andThen(context.endpoint.handler(input, context.principal), (result) =>
      isRejection(result) ? rejected(result, context) : succeeded(result, context),
    );
    return response instanceof Promise ? withTimeout(response, requestTimeoutMs) : response;
  }

  function failed(error: unknown, context: Context): Response {
    const { endpoint, decision, requestId } = context;
    if (error instanceof RequestAborted) return ABORTED_RESPONSE;
    errorLog.report(endpoint.id, error, requestId);
    const headerLines = operationLines(context) + rateLimitLines(decision);
    return error instanceof Unavailable
      ? unavailableResponse(error.retryAfterSeconds, headerLines)
      : internalErrorResponse(headerLines);
  }
}

/** On every response of the operation. */
function operationLines({ endpoint, rawInput }: Context): string {
  return endpoint.deprecationLines?.(rawInput) ?? "";
}

function rejected(rejection: Rejection, context: Context): Response {
  return errorResponse(rejection, operationLines(context) + rateLimitLines(context.decision));
}

function succeeded(result: AnySuccess, context: Context): Response {
  const { body, headers, dependsOn } = result;
  const { endpoint, decision, request, rawInput } = context;
  const lines = operationLines(context);
  const headerLines = headers ? lines + headerLinesOf(headers) : lines;
  const { method, success } = endpoint.operation;
  if (method !== "GET") return jsonResponse(success.status, headerLines + rateLimitLines(decision), body);
  const etag = result.etag ?? etagOf(body);
  const representation = { headerLines: headerLines + headerLine("ETag", etag), body, etag };
  if (dependsOn) endpoint.cache?.add(rawInput, representation, dependsOn);
  return conditionalResponse(request, representation, decision);
}
