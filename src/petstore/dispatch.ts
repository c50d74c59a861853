import type { Awaitable } from "../api/awaitable.ts";
import { type AnyInput, type Call, dispatch as dispatchCall, type Front } from "../api/dispatch.ts";
import { isRejection, type Rejection, Unavailable } from "../api/errors.ts";
import { etagOf } from "../api/etag.ts";
import { sha256 } from "../api/hash.ts";
import { parseFields } from "../api/json-fields.ts";
import { ABORTED_RESPONSE, headerLinesOf, type Headers, jsonResponse } from "../api/responses.ts";
import type { ApiKeyPrincipal } from "../domain/api-keys.ts";
import { IDEMPOTENCY_KEY_MAX_LENGTH, MAX_BODY_BYTES } from "../domain/constants.ts";
import type { Clock, IdempotentRequest } from "../domain/ports.ts";
import type { Decision } from "../domain/rate-limit.ts";
import type { OperationId } from "../domain/usage-history.ts";
import { headerLine, RequestAborted, type Response } from "../http1/index.ts";
import type { ErrorLog } from "../observe/event-reports.ts";
import { INVALID_IDEMPOTENCY_KEY, operationRemoved } from "./errors.ts";
import { createHandlers, type HandlerOptions } from "./handlers.ts";
import { OPERATIONS, type PetstoreOperation } from "./operations.ts";
import type { IdRange } from "./pet-json.ts";
import { ResponseCache } from "./response-cache.ts";
import {
  conditionalResponse,
  deprecationLines,
  errorResponse,
  internalErrorResponse,
  rateLimitLines,
  unavailableResponse,
} from "./responses.ts";

/** An operation and everything that serves it. */
export interface Endpoint {
  readonly id: OperationId;
  readonly operation: PetstoreOperation;
  readonly handler: AnyHandler;
  readonly cache: ResponseCache | undefined;
  /** On every response of a deprecated operation; the argument is the identifier in the path. */
  readonly deprecationLines: ((identifier: string) => string) | undefined;
  readonly removal: { readonly at: number; readonly rejection: Rejection } | undefined;
}

/** A request for an endpoint. */
export interface PetstoreCall extends Call {
  readonly endpoint: Endpoint;
  readonly principal: ApiKeyPrincipal;
  readonly decision: Decision;
}

interface AnySuccess {
  readonly body: string;
  readonly headers?: Headers;
  readonly etag?: string;
  readonly dependsOn?: IdRange;
}
/** The handler of any operation, for an input that was validated for that operation. */
type AnyHandler = (
  input: AnyInput & { readonly idempotentRequest: IdempotentRequest | undefined },
  principal: ApiKeyPrincipal,
) => Awaitable<AnySuccess | Rejection>;

export function createEndpoints(options: HandlerOptions): ReadonlyMap<OperationId, Endpoint> {
  const { petJson, baseUrl, responseCacheStatistics } = options;
  const handlers = createHandlers(options);
  const rows = Object.entries(OPERATIONS) as [OperationId, PetstoreOperation][];
  return new Map(
    rows.map(([id, operation]) => {
      const { deprecated } = operation;
      const endpoint = {
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
      return [id, endpoint];
    }),
  );
}

export interface DispatchOptions {
  readonly clock: Clock;
  readonly errorLog: ErrorLog;
  readonly requestTimeoutMs: number | undefined;
}

/** removed? → cached? → validate → handler → respond */
export function createDispatch({ clock, errorLog, requestTimeoutMs }: DispatchOptions) {
  const front: Front<PetstoreCall> = {
    maxBodyBytes: () => MAX_BODY_BYTES,
    parse: parseFields,
    execute: (input, call) => {
      const { endpoint, principal } = call;
      const idempotentRequest = idempotentRequestOf(input, call);
      return isRejection(idempotentRequest)
        ? idempotentRequest
        : endpoint.handler({ ...input, idempotentRequest }, principal);
    },
    succeed: (result, call) => succeeded(result as AnySuccess, call),
    reject: rejected,
    fail(error, call) {
      const { endpoint, decision, requestId } = call;
      if (error instanceof RequestAborted) return ABORTED_RESPONSE;
      errorLog.report(endpoint.id, error, requestId);
      const headerLines = operationLines(call) + rateLimitLines(decision);
      return error instanceof Unavailable
        ? unavailableResponse(error.retryAfterSeconds, headerLines)
        : internalErrorResponse(headerLines);
    },
    timeoutMs: requestTimeoutMs,
  };
  return function dispatch(call: PetstoreCall): Awaitable<Response> {
    const { endpoint, request, decision } = call;
    const { removal, cache } = endpoint;
    if (removal && clock.now() >= removal.at) return rejected(removal.rejection, call);
    const cached = cache?.find(request.query);
    return cached ? conditionalResponse(request, cached, decision) : dispatchCall(call, front);
  };
}

const VISIBLE_ASCII = new RegExp(`^[\\x21-\\x7e]{1,${IDEMPOTENCY_KEY_MAX_LENGTH}}$`);
const QUOTED = /^"(.*)"$/;

/** `"a"` and `a` are the same key: a structured header (RFC 9651) quotes its strings. */
function idempotentRequestOf(
  { bytes }: AnyInput,
  { endpoint: { operation }, request, principal }: PetstoreCall,
): IdempotentRequest | undefined | Rejection<"invalid_parameter"> {
  const header = operation.acceptsIdempotencyKey ? request.headers.get("idempotency-key") : null;
  if (header === null || bytes === undefined) return undefined;
  const idempotencyKey = QUOTED.exec(header)?.[1] ?? header;
  if (!VISIBLE_ASCII.test(idempotencyKey)) return INVALID_IDEMPOTENCY_KEY;
  return { keyId: principal.keyId, idempotencyKey, fingerprint: sha256(bytes) };
}

/** On every response of the operation. */
function operationLines({ endpoint, identifier }: PetstoreCall): string {
  return endpoint.deprecationLines?.(identifier) ?? "";
}

function rejected(rejection: Rejection, call: PetstoreCall): Response {
  return errorResponse(rejection, operationLines(call) + rateLimitLines(call.decision));
}

function succeeded(result: AnySuccess, call: PetstoreCall): Response {
  const { body, headers, dependsOn } = result;
  const { endpoint, decision, request } = call;
  const lines = operationLines(call);
  const headerLines = headers ? lines + headerLinesOf(headers) : lines;
  const { method, success } = endpoint.operation;
  if (method !== "GET") return jsonResponse(success.status, headerLines + rateLimitLines(decision), body);
  const etag = result.etag ?? etagOf(body);
  const representation = { headerLines: headerLines + headerLine("ETag", etag), body, etag };
  if (dependsOn) endpoint.cache?.add(request.query, representation, dependsOn);
  return conditionalResponse(request, representation, decision);
}
