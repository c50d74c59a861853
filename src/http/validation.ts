import { IDEMPOTENCY_KEY_MAX_LENGTH } from "../contract/constants.ts";
import {
  INVALID_IDEMPOTENCY_KEY,
  invalidBody,
  invalidParameter,
  isRejection,
  malformedIdentifier,
  type Rejection,
} from "../contract/errors.ts";
import { type Identifier, parseIdentifier } from "../contract/json.ts";
import { Invalid, type ObjectSchema } from "../contract/schema.ts";
import { andThen, type Awaitable } from "../domain/awaitable.ts";
import type { IdempotentRequest } from "../domain/ports.ts";
import { sha256 } from "../sha256.ts";
import type { Context } from "./dispatch.ts";
import { readQuery } from "./query-string.ts";
import { readJsonBody } from "./request-body.ts";

/** The validated input of an operation; undefined where the operation declares none. */
export interface OperationInput {
  readonly id: Identifier | undefined;
  readonly query: Record<string, unknown> | undefined;
  readonly body: unknown;
  readonly idempotentRequest: IdempotentRequest | undefined;
}

/** Validates the path, then the query, then the body and the Idempotency-Key. Values are never coerced. */
export function validate(context: Context): Awaitable<OperationInput | Rejection> {
  const { rawInput } = context;
  const { identifier, query: parameters, body } = context.endpoint.operation;
  const id =
    identifier && (parseIdentifier(rawInput) ?? malformedIdentifier(identifier.name, identifier.notFound));
  if (typeof id === "object") return id;
  const query = parameters && readQuery(rawInput, parameters);
  if (query instanceof Invalid) return invalidParameter(query);
  const input = { id, query, body: undefined, idempotentRequest: undefined };
  return body ? validateBody(context, input, body) : input;
}

function validateBody(
  { endpoint, request, principal }: Context,
  { id, query }: OperationInput,
  schema: ObjectSchema<unknown>,
): Awaitable<OperationInput | Rejection> {
  const { acceptsIdempotencyKey } = endpoint.operation;
  return andThen(readJsonBody(request, schema.names), (json): OperationInput | Rejection => {
    if (isRejection(json)) return json;
    const body = schema.read(json.value);
    if (body instanceof Invalid) return invalidBody(body);
    const header = acceptsIdempotencyKey ? request.headers.get("idempotency-key") : null;
    const idempotentRequest = readIdempotencyKey(header, principal.keyId, json.bytes);
    if (idempotentRequest && isRejection(idempotentRequest)) return idempotentRequest;
    return { id, query, body, idempotentRequest };
  });
}

const VISIBLE_ASCII = new RegExp(`^[\\x21-\\x7e]{1,${IDEMPOTENCY_KEY_MAX_LENGTH}}$`);
const QUOTED = /^"(.*)"$/;

/** `"a"` and `a` are the same key: a structured header (RFC 9651) quotes its strings. */
function readIdempotencyKey(
  header: string | null,
  keyId: number,
  body: Uint8Array,
): IdempotentRequest | undefined | Rejection<"invalid_parameter"> {
  if (header === null) return undefined;
  const idempotencyKey = QUOTED.exec(header)?.[1] ?? header;
  if (!VISIBLE_ASCII.test(idempotencyKey)) return INVALID_IDEMPOTENCY_KEY;
  return { keyId, idempotencyKey, fingerprint: sha256(body) };
}
