import { IDEMPOTENCY_KEY_MAX_LENGTH, IDEMPOTENCY_LIFETIME_MS, PAGE_LIMIT } from "../constants.ts";
import { encodeCursor } from "../cursor.ts";
import { duration } from "../formatting.ts";
import { OPERATIONS, type Operation } from "../operations.ts";
import { int64, type JsonSchema, type Schema } from "../schema.ts";
import { schemaRef } from "./component-schemas.ts";

const ref = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

const { limit, cursor } = OPERATIONS.listPets.query;

/** `components/parameters`: those that several operations share. */
export const PARAMETERS = {
  limit: queryParameter("limit", limit, "The maximum number of items on a page.", PAGE_LIMIT.default),
  cursor: queryParameter(
    "cursor",
    cursor,
    'The position of the page. Opaque: follow the URL in the `Link` header with `rel="next"`.',
    encodeCursor("pets", 20n),
  ),
  "If-None-Match": {
    name: "If-None-Match",
    in: "header",
    required: false,
    description:
      "One or more `ETag`s. The response is 304 without a body if the current `ETag` is one of them.",
    schema: { type: "string" },
    example: '"1f3a9c0e5b7d2846"',
  },
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description:
      `Makes a retry safe. Choose a new key of up to ${IDEMPOTENCY_KEY_MAX_LENGTH} visible ASCII characters for each new operation; ` +
      `double quotes around it are optional. A retry within ${duration(IDEMPOTENCY_LIFETIME_MS)} gets the first successful response again.`,
    // The two double quotes count too.
    schema: { type: "string", minLength: 1, maxLength: IDEMPOTENCY_KEY_MAX_LENGTH + 2, pattern: "^[!-~]+$" },
    example: "0198a6f2-6d5e-7cc1-9a53-2f6f1d8f3b11",
  },
} as const satisfies Record<string, JsonSchema>;

export function parametersOf({
  identifier,
  query = {},
  acceptsIdempotencyKey,
  success,
}: Operation): JsonSchema[] {
  const parameters = identifier ? [pathParameter(identifier)] : [];
  for (const [name, schema] of Object.entries(query)) {
    if (name === "limit" || name === "cursor") parameters.push(ref(name));
    else parameters.push(queryParameter(name, schema, `Only items with this ${name}.`));
  }
  if (success.headers.includes("ETag")) parameters.push(ref("If-None-Match"));
  if (acceptsIdempotencyKey) parameters.push(ref("Idempotency-Key"));
  return parameters;
}

function pathParameter({ name, description }: NonNullable<Operation["identifier"]>): JsonSchema {
  return { name, in: "path", required: true, description, schema: int64().json, example: 1 };
}

function queryParameter(
  name: string,
  schema: Schema<unknown>,
  description: string,
  example?: unknown,
): JsonSchema {
  const parameter = { name, in: "query", required: false, description, schema: schemaRef(schema) };
  return example === undefined ? parameter : { ...parameter, example };
}
