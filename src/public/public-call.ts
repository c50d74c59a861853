import type { ValidInput, OperationCall } from "../api/dispatch.ts";
import { Rejection } from "../api/errors.ts";
import { emptyResponse, headerLinesOf, jsonResponse } from "../api/responses.ts";
import { IDEMPOTENCY_KEY_MAX_LENGTH } from "../domain/idempotency.ts";
import type { IdempotentRequest } from "../domain/ports/pets-and-orders.ts";
import { headerLine, type Response } from "../http1/index.ts";
import type { RequestRecord } from "../observe/request-record.ts";
import { andThen, type Awaitable } from "../runtime/awaitable.ts";
import { etagOf, matchesEtag } from "../runtime/etag.ts";
import { sha256 } from "../runtime/hash.ts";
import type { AdmittedCall } from "./admission.ts";
import type { AnySuccess, Endpoint } from "./endpoint.ts";
import { INVALID_IDEMPOTENCY_KEY } from "./errors.ts";
import type { Representation } from "./response-cache.ts";
import { apiLines } from "./responses.ts";

/** A request to an endpoint. */
export interface PublicCall extends OperationCall, AdmittedCall {
  readonly endpoint: Endpoint;
  readonly record: RequestRecord;
}

export function callHandler(input: ValidInput, call: PublicCall): Awaitable<Representation | Rejection> {
  const idempotentRequest = idempotentRequestOf(input, call);
  if (idempotentRequest instanceof Rejection) return idempotentRequest;
  call.record.trace?.begin("store");
  return andThen(call.endpoint.handler(input, call, idempotentRequest), (result) =>
    result instanceof Rejection ? result : representationOf(result, call),
  );
}

function representationOf(result: AnySuccess, call: PublicCall): Representation {
  const { body, headers, revision } = result;
  let headerLines = operationLines(call);
  if (headers) headerLines += headerLinesOf(headers);
  if (!call.endpoint.operation.success.headers.includes("ETag"))
    return { headerLines, body, etag: undefined, revision };
  // When a next page appears, the representation is another one, although its body is the same.
  const { etag = etagOf((headers?.["Link"] ?? "") + body) } = result;
  return { headerLines: headerLines + headerLine("ETag", etag), body, etag, revision };
}

/** Responds to GET with 304 if the client already has this representation. */
export function respond(
  { headerLines, body, etag }: Representation,
  { endpoint: { operation }, request: { headers }, decision }: PublicCall,
): Response {
  const { method, success } = operation;
  const lines = headerLines + apiLines(decision);
  const isKnown = method === "GET" && etag !== undefined && matchesEtag(headers.get("if-none-match"), etag);
  return isKnown ? emptyResponse(304, lines) : jsonResponse(success.status, lines, body);
}

const IDEMPOTENCY_KEY = new RegExp(`^[\\x21-\\x7e]{1,${IDEMPOTENCY_KEY_MAX_LENGTH}}$`);
const QUOTED = /^"(.*)"$/;

/**
 * Reads the Idempotency-Key. `"a"` and `a` are the same key, because a structured header (RFC 9651) quotes its strings.
 */
function idempotentRequestOf(
  { bytes }: ValidInput,
  { endpoint: { operation }, request, principal }: PublicCall,
): IdempotentRequest | undefined | Rejection<"invalid_parameter"> {
  const header = operation.acceptsIdempotencyKey ? request.headers.get("idempotency-key") : null;
  if (header === null || bytes === undefined) return undefined;
  const idempotencyKey = QUOTED.exec(header)?.[1] ?? header;
  if (!IDEMPOTENCY_KEY.test(idempotencyKey)) return INVALID_IDEMPOTENCY_KEY;
  return { keyId: principal.keyId, idempotencyKey, fingerprint: sha256(bytes) };
}

/** The header lines of every response of the operation. */
export function operationLines({ endpoint, identifier }: PublicCall): string {
  return endpoint.deprecationLines?.(identifier) ?? "";
}
