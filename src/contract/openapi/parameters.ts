import { encodeCursor } from "../cursor.ts";
import { OPERATIONS, type Operation } from "../operations.ts";
import { int64, type JsonSchema, type Schema } from "../schema.ts";
import { schemaRef } from "./component-schemas.ts";

const ref = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

const { limit, cursor } = OPERATIONS.listPets.query;

/** `components/parameters`: those that several operations take alike. */
export const PARAMETERS = {
  limit: queryParameter("limit", limit, "The most entries that a page may hold.", 20),
  cursor: queryParameter(
    "cursor",
    cursor,
    'Where to carry on. Opaque: take it, with the rest of the address, from `Link` with `rel="next"`.',
    encodeCursor("pets", 20n),
  ),
  "If-None-Match": {
    name: "If-None-Match",
    in: "header",
    required: false,
    description: "`ETag`s seen earlier. The answer is 304, without a body, when one of them still holds.",
    schema: { type: "string" },
    example: '"1f3a9c0e5b7d2846"',
  },
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description:
      "Makes a retry safe: up to 255 visible characters, quoted or bare, of your own making and new for each piece of " +
      "work. A repeat within 24 hours gets the first successful answer again instead of doing the work again.",
    schema: { type: "string", minLength: 1, maxLength: 257, pattern: "^[!-~]+$" },
    example: "0198a6f2-6d5e-7cc1-9a53-2f6f1d8f3b11",
  },
} as const satisfies Record<string, JsonSchema>;

export function parametersOf({ identifier, query = {}, retriable, success }: Operation): JsonSchema[] {
  const parameters = identifier ? [pathParameter(identifier)] : [];
  for (const [name, schema] of Object.entries(query)) {
    if (name === "limit" || name === "cursor") parameters.push(ref(name));
    else parameters.push(queryParameter(name, schema, `Only entries with this ${name}.`));
  }
  if (success.headers.includes("ETag")) parameters.push(ref("If-None-Match"));
  if (retriable) parameters.push(ref("Idempotency-Key"));
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
