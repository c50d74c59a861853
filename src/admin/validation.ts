import { INVALID_JSON, invalidBody, invalidParameter } from "../contract/errors.ts";
import { type Identifier, INT64_RANGE, parseIdentifier, parseJson } from "../contract/json.ts";
import { Invalid, type ObjectSchema } from "../contract/schema.ts";
import { andThen, type Awaitable } from "../domain/awaitable.ts";
import { readQuery } from "../http/query-string.ts";
import { jsonTextOf } from "../http/request-body.ts";
import type { Request } from "../http1/index.ts";
import { type AdminRejection, MAX_BODY_BYTES, MAX_OPEN_BODY_BYTES } from "./contract/errors.ts";
import type { AdminOperation } from "./contract/operation.ts";
import { adminBodyTooLarge } from "./rejections.ts";

/** The validated input of an operation; undefined where the operation declares none. */
export interface AnyInput {
  readonly id: Identifier | undefined;
  readonly query: Record<string, unknown> | undefined;
  readonly body: unknown;
}

/** Validates the path, then the query, then the body. Values are never coerced. */
export function validate(
  request: Request,
  operation: AdminOperation,
  identifierText: string,
): Awaitable<AnyInput | AdminRejection> {
  const { identifier, query: parameters, body: schema } = operation;
  const id = identifier && parseIdentifier(identifierText);
  if (identifier && id === undefined) {
    const { name, notFound } = identifier;
    return { code: notFound, message: `${name} must be a decimal integer ${INT64_RANGE}.` };
  }
  const query = parameters && readQuery(request.query, parameters);
  if (query instanceof Invalid) return invalidParameter(query);
  if (schema === undefined) return { id, query, body: undefined };
  const maxBytes = operation.needsNoToken ? MAX_OPEN_BODY_BYTES : MAX_BODY_BYTES;
  return andThen(request.body(maxBytes), (bytes) => {
    if (bytes === undefined) return adminBodyTooLarge(maxBytes);
    const json = readJson(request, bytes, schema);
    if ("code" in json) return json;
    const body = schema.read(json.value);
    return body instanceof Invalid ? invalidBody(body) : { id, query, body };
  });
}

/** No body at all is an empty object if no field is required. */
function readJson(
  request: Request,
  bytes: Uint8Array,
  { required }: ObjectSchema<unknown>,
): { readonly value: unknown } | AdminRejection {
  if (bytes.length === 0 && Object.keys(required).length === 0) return { value: {} };
  const text = jsonTextOf(request, bytes);
  if (typeof text !== "string") return text;
  const value = parseJson(text);
  return value === undefined ? INVALID_JSON : { value };
}
