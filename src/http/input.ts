import { type Refusal, refuse } from "../contract/errors.ts";
import { type Identifier, parseIdentifier } from "../contract/json.ts";
import type { Operation } from "../contract/operations.ts";
import { Invalid } from "../contract/schema.ts";
import type { Attempt, Awaitable } from "../domain/ports.ts";
import { readJsonBody } from "./body.ts";
import type { Caller } from "./callers.ts";
import { readAttempt } from "./idempotency.ts";
import { readQuery } from "./query.ts";

/** Everything an operation declares, read and checked; what it does not declare is undefined. */
export interface OperationInput {
  readonly id: Identifier | undefined;
  readonly query: Record<string, unknown> | undefined;
  readonly body: unknown;
  readonly attempt: Attempt | undefined;
  /** Says when the request that carried a body has been given up. */
  readonly signal: AbortSignal | undefined;
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
  caller: Caller,
): Awaitable<OperationInput | Refusal> {
  const id = readIdentifier(words, operation);
  if (typeof id === "object") return id;
  const query = operation.query && readQuery(words, operation.query);
  if (query instanceof Invalid) return refuse("invalid_parameter", sentence(query));
  const input = { id, query, body: undefined, attempt: undefined, signal: undefined };
  return operation.body ? readBody(request, operation, { input, caller }) : input;
}

function readIdentifier(words: string, { identifier }: Operation): Identifier | undefined | Refusal {
  if (identifier === undefined) return undefined;
  return (
    parseIdentifier(words) ??
    refuse(
      identifier.notFound,
      `${identifier.name} must be an int64 in plain decimal; nothing else names anything.`,
    )
  );
}

function readBody(
  request: Request,
  { body, retriable }: Operation,
  { input, caller }: { input: OperationInput; caller: Caller },
): Promise<OperationInput | Refusal> {
  return readJsonBody(request).then((json) => {
    if ("refused" in json) return json;
    const value = body?.read(json.value);
    if (value instanceof Invalid) return refuse("invalid_body", sentence(value));
    const attempt =
      retriable && readAttempt(request.headers.get("idempotency-key"), caller.keyId, json.bytes);
    if (attempt && "refused" in attempt) return attempt;
    return { id: input.id, query: input.query, body: value, attempt, signal: request.signal };
  });
}

/** Fields keep their exact names, also at the start. */
function sentence({ faults }: Invalid): string {
  return `${faults.join("; ")}.`;
}
