import { type Refusal, refuse } from "../contract/errors.ts";
import { type Identifier, parseIdentifier } from "../contract/json.ts";
import type { Operation } from "../contract/operations.ts";
import { Invalid } from "../contract/schema.ts";
import type { Attempt, Awaitable } from "../domain/ports.ts";
import type { Incoming } from "../http1/request.ts";
import { andThen } from "../domain/awaitable.ts";
import { readJsonBody } from "./request-body.ts";
import type { Caller } from "../auth/authenticator.ts";
import { readAttempt } from "./idempotency-key.ts";
import { readQuery } from "./query-string.ts";

/** Everything an operation declares, read and checked; what it does not declare is undefined. */
export interface OperationInput {
  readonly id: Identifier | undefined;
  readonly query: Record<string, unknown> | undefined;
  readonly body: unknown;
  readonly attempt: Attempt | undefined;
}

/** A request for an operation; `words` are the identifier in its path or, without one, its query. */
interface Asked {
  readonly incoming: Incoming;
  readonly operation: Operation;
  readonly words: string;
}

/** Reads the path, then the query, then the body. Nothing is coerced. */
export function readInput(
  { incoming, operation, words }: Asked,
  caller: Caller,
): Awaitable<OperationInput | Refusal> {
  const id = readIdentifier(words, operation);
  if (typeof id === "object") return id;
  const query = operation.query && readQuery(words, operation.query);
  if (query instanceof Invalid) return refuse("invalid_parameter", sentence(query));
  const input = { id, query, body: undefined, attempt: undefined };
  return operation.body ? readBody(incoming, operation, { input, caller }) : input;
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
  incoming: Incoming,
  { body, retriable }: Operation,
  { input, caller }: { input: OperationInput; caller: Caller },
): Awaitable<OperationInput | Refusal> {
  return andThen(readJsonBody(incoming), (json): OperationInput | Refusal => {
    if ("refused" in json) return json;
    const value = body?.read(json.value);
    if (value instanceof Invalid) return refuse("invalid_body", sentence(value));
    const attempt =
      retriable && readAttempt(incoming.fields.get("idempotency-key"), caller.keyId, json.bytes);
    if (attempt && "refused" in attempt) return attempt;
    return { id: input.id, query: input.query, body: value, attempt };
  });
}

/** Fields keep their exact names, also at the start. */
function sentence({ faults }: Invalid): string {
  return `${faults.join("; ")}.`;
}
