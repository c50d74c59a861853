import { IDEMPOTENCY_KEY_MAX_LENGTH, IDEMPOTENCY_LIFETIME_MS, PAGE_LIMIT } from "../constants.ts";
import { duration } from "../formatting.ts";
import { OPERATIONS, type Operation } from "../operations.ts";
import { int64, type JsonSchema, type Schema } from "../schema.ts";
import { schemaRef } from "./component-schemas.ts";

const ref = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

const { limit, cursor } = OPERATIONS.listPets.query;

/**
 * `components/parameters`: those that several operations share. Programs that import the document send the examples, so
 * a cursor, an ETag and an Idempotency-Key have none: they would skip pets, or replay an earlier response.
 */
export const PARAMETERS = {
  limit: queryParameter("limit", limit, "The maximum number of items on a page.", PAGE_LIMIT.default),
  cursor: queryParameter(
    "cursor",
    cursor,
    'The position of the page. Opaque: follow the URL in the `Link` header with `rel="next"`. The first page has none.',
  ),
  "If-None-Match": {
    name: "If-None-Match",
    in: "header",
    required: false,
    description:
      "One or more `ETag`s. The response is 304 without a body if the current `ETag` is one of them.",
    schema: { type: "string" },
  },
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description:
      `Makes a retry safe. Choose a new key, for example a UUID, of up to ${IDEMPOTENCY_KEY_MAX_LENGTH} visible ASCII characters for each new operation; ` +
      `double quotes around it are optional. A retry within ${duration(IDEMPOTENCY_LIFETIME_MS)} gets the first successful response again.`,
    // The two double quotes count too.
    schema: { type: "string", minLength: 1, maxLength: IDEMPOTENCY_KEY_MAX_LENGTH + 2, pattern: "^[!-~]+$" },
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
    else if (name === "id") parameters.push(identifiersParameter(name, schema));
    else parameters.push(queryParameter(name, schema, `Only items with this ${name}.`));
  }
  if (success.headers.includes("ETag")) parameters.push(ref("If-None-Match"));
  if (acceptsIdempotencyKey) parameters.push(ref("Idempotency-Key"));
  return parameters;
}

function pathParameter({ name, description }: NonNullable<Operation["identifier"]>): JsonSchema {
  return { name, in: "path", required: true, description, schema: int64().json, example: 1 };
}

function identifiersParameter(name: string, schema: Schema<unknown>): JsonSchema {
  const description =
    "Only items with these identifiers, separated by commas. Those that do not exist are left out.";
  return { ...queryParameter(name, schema, description), style: "form", explode: false };
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
