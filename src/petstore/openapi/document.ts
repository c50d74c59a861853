import { longDuration } from "../../api/formatting.ts";
import { toJson } from "../../api/json.ts";
import {
  byStatus,
  errorSchema,
  meaningsOf,
  NamedSchemas,
  openApiPaths,
  pathParameters,
} from "../../api/openapi.ts";
import { PROTOCOL_ERRORS } from "../../api/dispatch.ts";
import type { JsonSchema, Schema } from "../../api/schema.ts";
import { toYaml } from "../../api/yaml.ts";
import {
  IDEMPOTENCY_KEY_MAX_LENGTH,
  IDEMPOTENCY_LIFETIME_MS,
  KEY_PREFIX,
  PAGE_LIMIT,
} from "../../domain/constants.ts";
import { NewOrder, NewPet, Order, OrderStatus, OrderUpdate, Pet, PetStatus } from "../../domain/resources.ts";
import type { OperationId } from "../../domain/usage-history.ts";
import { docsUrl, type DocumentedSettings } from "../documented-settings.ts";
import { type ErrorCode, ERRORS } from "../errors.ts";
import {
  COMMON_ERRORS,
  operationErrors,
  OPERATIONS,
  OrderList,
  PetList,
  PETSTORE_API,
  type PetstoreOperation,
} from "../operations.ts";
import { errorExample, EXAMPLES } from "./examples.ts";
import {
  ALLOW,
  componentHeaders,
  DEPRECATION_HEADERS,
  headersOf,
  optionalDeprecationHeaders,
  type ResponseHeader,
} from "./headers.ts";

/** The OpenAPI 3.1 document. It has the bounds of int64 as bigints; `openApiJson` writes them exactly. */
export function openApiDocument(settings: DocumentedSettings): JsonSchema {
  const { environment, baseUrl, otherUrl } = settings;
  const other = environment === "production" ? "staging" : "production";
  return {
    openapi: "3.1.0",
    info: {
      title: "Petstore",
      version: "1.0.0",
      summary: "A pet store over HTTP",
      description: description(settings),
      contact: { name: "Petstore", url: docsUrl(baseUrl) },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [
      { url: baseUrl, description: SERVER_DESCRIPTIONS[environment] },
      ...(otherUrl === undefined ? [] : [{ url: otherUrl, description: SERVER_DESCRIPTIONS[other] }]),
    ],
    tags: TAGS,
    security: [{ apiKey: [] }],
    paths: paths(settings),
    components: {
      schemas: SCHEMAS,
      parameters: PARAMETERS,
      headers: componentHeaders(settings),
      responses: sharedResponses(settings),
      securitySchemes: { apiKey: apiKeyScheme(settings) },
    },
    "x-responses-outside-operations": responsesOutsideOperations(settings),
  };
}

/** The document as YAML text. */
export function openApiYaml(settings: DocumentedSettings): string {
  return toYaml(openApiDocument(settings));
}

/** The document as JSON text. */
export function openApiJson(settings: DocumentedSettings): string {
  return toJson(openApiDocument(settings), 2);
}

const SERVER_DESCRIPTIONS = {
  production: `Production: keys begin with \`${KEY_PREFIX.production}\``,
  staging: `Staging, with separate data: keys begin with \`${KEY_PREFIX.staging}\``,
} as const;

const TAGS: readonly { name: PetstoreOperation["tag"]; description: string }[] = [
  { name: "Pets", description: "The pets of the store." },
  {
    name: "Orders",
    description:
      "Orders for pets. An order belongs to the API key that placed it and changes the status of its pet.",
  },
];

function apiKeyScheme({ environment }: DocumentedSettings): JsonSchema {
  return {
    type: "http",
    scheme: "bearer",
    bearerFormat: `${KEY_PREFIX[environment]}…`,
    description: "An API key as a bearer token. The name of the scheme is case-insensitive.",
  };
}

function paths(settings: DocumentedSettings): JsonSchema {
  return openApiPaths<OperationId, PetstoreOperation>(PETSTORE_API, {
    schemas,
    parametersOf,
    requestExamples: (id) => EXAMPLES[id].request,
    success: (id, operation) => ({
      headers: headersOf(operation.success.headers, operation),
      examples: EXAMPLES[id].success,
    }),
    moreResponses: (operation) => (hasEtag(operation) ? { "304": notModified(operation) } : {}),
    errorsOf: (operation) => [...operationErrors(operation), ...COMMON_ERRORS],
    errorResponse(status, codes, operation) {
      const headers = deprecationHeaders(operation, codes, settings);
      return headers ? errorResponse({ status, codes, headers }, settings) : responseRef(codes);
    },
    flags: ({ deprecated }) => (deprecated ? { deprecated: true } : {}),
  });
}

const schemas = new NamedSchemas({
  Pet,
  NewPet,
  PetStatus,
  Order,
  NewOrder,
  OrderUpdate,
  OrderStatus,
  Pets: PetList,
  Orders: OrderList,
});

const errors = Object.entries({ ...ERRORS, ...PROTOCOL_ERRORS });
const statuses = [...new Set(errors.map(([, { status }]) => status))].toSorted((a, b) => a - b);

/** The name does not shadow `Error` in the code that generators make. */
const ApiError: JsonSchema = {
  type: "object",
  description: "An error. `code` is for programs, `message` for people.",
  required: ["code", "message", "status"],
  properties: {
    code: {
      type: "string",
      enum: errors.map(([code]) => code),
      description: "Machine-readable error code, one of a closed set",
    },
    message: { type: "string", minLength: 1, description: "Human-readable description" },
    status: { type: "integer", enum: statuses, description: "The HTTP status code" },
  },
  additionalProperties: false,
};

export const SCHEMAS: JsonSchema = { ...schemas.components(), ApiError };

const parameterRef = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

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
      `double quotes around it are optional. A retry within ${longDuration(IDEMPOTENCY_LIFETIME_MS)} gets the first successful response again.`,
    // The two double quotes count too.
    schema: { type: "string", minLength: 1, maxLength: IDEMPOTENCY_KEY_MAX_LENGTH + 2, pattern: "^[!-~]+$" },
  },
} as const satisfies Record<string, JsonSchema>;

export function parametersOf(operation: PetstoreOperation): JsonSchema[] {
  const { query = {}, acceptsIdempotencyKey } = operation;
  return [
    ...pathParameters(operation, { example: 1 }),
    ...Object.entries(query).map(([name, schema]) => {
      if (name === "limit" || name === "cursor") return parameterRef(name);
      if (name === "id") return identifiersParameter(name, schema);
      return queryParameter(name, schema, `Only items with this ${name}.`);
    }),
    ...(hasEtag(operation) ? [parameterRef("If-None-Match")] : []),
    ...(acceptsIdempotencyKey ? [parameterRef("Idempotency-Key")] : []),
  ];
}

function hasEtag({ success }: PetstoreOperation): boolean {
  return success.headers.includes("ETag");
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
  const parameter = { name, in: "query", required: false, description, schema: schemas.use(schema) };
  return example === undefined ? parameter : { ...parameter, example };
}

const ADDED_HEADERS: Readonly<Record<number, readonly ResponseHeader[]>> = {
  401: ["WWW-Authenticate"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};

/** Error responses in `components`, named after their codes. Operations share them. */
function sharedResponses(settings: DocumentedSettings): JsonSchema {
  const shared: Record<string, JsonSchema> = {};
  for (const operation of Object.values<PetstoreOperation>(OPERATIONS)) {
    for (const [status, codes] of byStatus(ERRORS, [...operationErrors(operation), ...COMMON_ERRORS])) {
      if (deprecationHeaders(operation, codes, settings)) continue;
      shared[nameOf(codes)] = errorResponse({ status, codes }, settings);
    }
  }
  return shared;
}

const responseRef = (codes: readonly ErrorCode[]): JsonSchema => ({
  $ref: `#/components/responses/${nameOf(codes)}`,
});

/** A 401 or a 429 comes before the operation is known, so it has no deprecation headers. */
function deprecationHeaders(
  operation: PetstoreOperation,
  codes: readonly ErrorCode[],
  settings: DocumentedSettings,
): JsonSchema | undefined {
  if (!operation.deprecated) return undefined;
  if (codes.some((code) => operationErrors(operation).includes(code)))
    return headersOf(DEPRECATION_HEADERS, operation);
  return codes.some((code) => ERRORS[code].status >= 500) ? optionalDeprecationHeaders(settings) : undefined;
}

/** Responses that belong to no operation, in an extension because OpenAPI has no place for them. */
function responsesOutsideOperations(settings: DocumentedSettings): JsonSchema {
  const responses: Record<string, JsonSchema> = {
    "204": {
      description: "The response to OPTIONS. `Allow` lists the methods of the path.",
      headers: { ...headersOf([]), Allow: ALLOW },
    },
    "403": errorResponse({ status: 403, codes: ["read_only_key"] }, settings),
    "404": errorResponse({ status: 404, codes: ["not_found"] }, settings),
    "405": errorResponse({ status: 405, codes: ["method_not_allowed"], headers: { Allow: ALLOW } }, settings),
  };
  for (const [status, codes] of byStatus(ERRORS, COMMON_ERRORS)) {
    responses[status] = responseRef(codes);
  }
  return responses;
}

function notModified(operation: PetstoreOperation): JsonSchema {
  const description = "Not modified: the current `ETag` is in `If-None-Match`. There is no body.";
  return { description, headers: headersOf(operation.success.headers, operation) };
}

interface ErrorResponse {
  readonly status: number;
  readonly codes: readonly ErrorCode[];
  readonly headers?: JsonSchema;
}

function errorResponse({ status, codes, headers }: ErrorResponse, settings: DocumentedSettings): JsonSchema {
  const examples = codes.map((code) => [code, errorExample(code, settings)]);
  return {
    description: meaningsOf(ERRORS, codes),
    headers: { ...headersOf(ADDED_HEADERS[status] ?? []), ...headers },
    content: {
      "application/json": { schema: errorSchema(status, codes), examples: Object.fromEntries(examples) },
    },
  };
}

/** `missing_api_key`, `invalid_api_key` → `MissingApiKeyOrInvalidApiKey`. */
function nameOf(codes: readonly ErrorCode[]): string {
  return codes
    .map((code) => code.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase()))
    .join("Or");
}

/** The description of the API in Markdown. The documentation has the rest. */
export function description({ baseUrl, environment }: DocumentedSettings): string {
  const docs = docsUrl(baseUrl);
  return [
    "A pet store over HTTP: list pets, add pets, and place, complete or cancel orders. Requests and responses are JSON.",
    `Send your API key with every request, as \`Authorization: Bearer ${KEY_PREFIX[environment]}…\`; see [Authentication](${docs}/authentication).`,
    `Each key has [rate limits](${docs}/rate-limits): after a 429, wait \`Retry-After\` seconds. To read a whole list, follow its [\`Link\` headers](${docs}/pagination).`,
    `A \`POST\` with an [\`Idempotency-Key\`](${docs}/idempotency) is safe to retry. [Integers](${docs}/integers) have 64 bits: read them without rounding.`,
    `Every error has one of these [codes](${docs}/errors). The [documentation](${docs}) has examples in four languages.`,
  ].join("\n");
}
