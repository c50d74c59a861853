import { type Rejection, rejection } from "../contract/errors.ts";
import { type Identifier, parseIdentifier } from "../contract/json.ts";
import type { Operation } from "../contract/operations.ts";
import { Invalid } from "../contract/schema.ts";
import { andThen, type Awaitable } from "../domain/awaitable.ts";
import type { IdempotentRequest } from "../domain/ports.ts";
import type { Request } from "../http1/index.ts";
import { readJsonBody } from "./request-body.ts";
import type { ApiKeyPrincipal } from "../auth/authenticator.ts";
import { readIdempotencyKey } from "./idempotency-key.ts";
import { readQuery } from "./query-string.ts";

/** Everything an operation declares, read and checked; what it does not declare is undefined. */
export interface OperationInput {
  readonly id: Identifier | undefined;
  readonly query: Record<string, unknown> | undefined;
  readonly body: unknown;
  readonly idempotentRequest: IdempotentRequest | undefined;
}

/** A request for an operation; `words` are the identifier in its path or, without one, its query. */
interface Asked {
  readonly request: Request;
  readonly operation: Operation;
  readonly words: string;
}

/** Reads the path, then the query, then the body. Nothing is coerced. */
export function readInput(
  { request, operation, words }: Asked,
  principal: ApiKeyPrincipal,
): Awaitable<OperationInput | Rejection> {
  const id = readIdentifier(words, operation);
  if (typeof id === "object") return id;
  const query = operation.query && readQuery(words, operation.query);
  if (query instanceof Invalid) return rejection("invalid_parameter", sentence(query));
  const input = { id, query, body: undefined, idempotentRequest: undefined };
  return operation.body ? readBody(request, operation, { input, principal }) : input;
}

function readIdentifier(words: string, { identifier }: Operation): Identifier | undefined | Rejection {
  if (identifier === undefined) return undefined;
  return (
    parseIdentifier(words) ??
    rejection(
      identifier.notFound,
      `${identifier.name} must be an int64 in plain decimal; nothing else names anything.`,
    )
  );
}

function readBody(
  request: Request,
  { body, retriable }: Operation,
  { input, principal }: { input: OperationInput; principal: ApiKeyPrincipal },
): Awaitable<OperationInput | Rejection> {
  return andThen(readJsonBody(request), (json): OperationInput | Rejection => {
    if ("code" in json) return json;
    const value = body?.read(json.value);
    if (value instanceof Invalid) return rejection("invalid_body", sentence(value));
    const idempotentRequest =
      retriable && readIdempotencyKey(request.headers.get("idempotency-key"), principal.keyId, json.bytes);
    if (idempotentRequest && "code" in idempotentRequest) return idempotentRequest;
    return { id: input.id, query: input.query, body: value, idempotentRequest };
  });
}

/** HeaderFields keep their exact names, also at the start. */
function sentence({ faults }: Invalid): string {
  return `${faults.join("; ")}.`;
}
