import { longDuration } from "../../text/durations.ts";
import { toJson } from "../../api/json.ts";
import {
  errorSchema,
  meaningsOf,
  openApiPaths,
  type Parameter,
  pathParameters,
  withReferences,
} from "../../api/openapi.ts";
import { PROTOCOL_ERRORS } from "../../api/protocol-errors.ts";
import { encodeCursor } from "../../domain/cursor.ts";
import type { JsonSchema, Schema } from "../../api/schema.ts";
import { toYaml } from "../../api/yaml.ts";
import { otherEnvironment } from "../../domain/environments.ts";
import { API_VERSION } from "../../domain/paths.ts";
import { IDEMPOTENCY_KEY_MAX_LENGTH, IDEMPOTENCY_LIFETIME_MS } from "../../domain/idempotency.ts";
import { KEY_PREFIX } from "../../domain/secrets.ts";
import { PAGE_LIMIT } from "../../domain/size-limits.ts";
import type { OperationId } from "../../domain/operation-ids.ts";
import type { DocumentedSettings } from "../../public/documented-settings.ts";
import { docsUrl } from "../../public/site-urls.ts";
import { type ErrorCode, ERRORS } from "../errors.ts";
import {
  COMMON_ERRORS,
  NAMED_SCHEMAS,
  operationErrors,
  OPERATIONS,
  PETSTORE_API,
  type PetstoreOperation,
  isConditionalGet,
} from "../operations.ts";
import { deprecatedDescription } from "../deprecation.ts";
import { errorExample, EXAMPLES, FILTERED, retryAfterExample } from "./examples.ts";
import {
  ALLOW,
  componentHeaders,
  DEPRECATION_HEADERS,
  ETAG_EXAMPLE,
  headersOf,
  optionalDeprecationHeaders,
  type ResponseHeader,
  RETRY_AFTER,
} from "./headers.ts";

/** The OpenAPI 3.1 document. The bounds of int64 are bigints; `openApiJson` writes them exactly. */
export function openApiDocument(settings: DocumentedSettings): JsonSchema {
  const { environment, baseUrl, otherEnvironmentUrl } = settings;
  const other = otherEnvironment(environment);
  const headers = componentHeaders(settings);
  /** Error responses that operations share, named after their codes. */
  const responses: Record<string, JsonSchema> = {};

  function errorResponse(status: number, codes: readonly ErrorCode[], more?: JsonSchema): JsonSchema {
    const examples = Object.fromEntries(codes.map((code) => [code, errorExample(code, settings)]));
    return {
      description: meaningsOf(ERRORS, codes),
      headers: {
        ...headersOf(headers, ADDED_HEADERS[status] ?? []),
        ...(RETRIED_STATUSES.has(status) && {
          "Retry-After": {
            ...RETRY_AFTER,
            examples: Object.fromEntries(codes.map((code) => [code, retryAfterExample(code, settings)])),
          },
        }),
        ...more,
      },
      content: { "application/json": { schema: errorSchema(ApiError, status, codes), examples } },
    };
  }
  const sharedResponse = (status: number, codes: readonly ErrorCode[]) =>
    (responses[nameOf(codes)] ??= errorResponse(status, codes));

  /** The deprecation headers of errors. A 401 or a 429 response precedes routing, so it has none. */
  function deprecationHeaders(operation: PetstoreOperation, codes: readonly ErrorCode[]) {
    if (!operation.deprecated) return undefined;
    if (codes.some((code) => operationErrors(operation).includes(code)))
      return headersOf(headers, DEPRECATION_HEADERS, operation);
    return codes.some((code) => ERRORS[code].status >= 500) ? optionalDeprecationHeaders(headers) : undefined;
  }

  const paths = openApiPaths<OperationId, PetstoreOperation>(PETSTORE_API, {
    parametersOf,
    additionsOf(id, operation) {
      const ownHeaders = headersOf(headers, operation.success.headers, operation);
      const notModified = { description: NOT_MODIFIED, headers: ownHeaders };
      return {
        ...EXAMPLES[id],
        description: descriptionOf(operation, settings),
        headers: ownHeaders,
        responses: isConditionalGet(operation) ? { "304": notModified } : {},
      };
    },
    errorsOf: (operation) => [...operationErrors(operation), ...COMMON_ERRORS],
    errorResponse(status, codes, operation) {
      const more = deprecationHeaders(operation, codes);
      return more ? errorResponse(status, codes, more) : sharedResponse(status, codes);
    },
    flags: ({ deprecated }) => (deprecated ? { deprecated: true } : {}),
  });

  /** The responses outside of operations, for which OpenAPI has no place. */
  const outsideOperations: Record<string, JsonSchema> = {
    "204": {
      description: "The response to OPTIONS. `Allow` lists the methods of the path.",
      headers: { ...headersOf(headers, []), Allow: ALLOW },
    },
    "403": errorResponse(403, ["read_only_key"]),
    "404": errorResponse(404, ["not_found"]),
    "405": errorResponse(405, ["method_not_allowed"], { Allow: ALLOW }),
  };
  for (const [status, codes] of Map.groupBy(COMMON_ERRORS, (code) => ERRORS[code].status))
    outsideOperations[status] = sharedResponse(status, codes);

  return withReferences({
    openapi: "3.1.0",
    info: {
      title: "Petstore",
      version: `${API_VERSION}.0`,
      summary: "A pet store over HTTP",
      description: description(settings),
      contact: { name: "Petstore", url: docsUrl(baseUrl) },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [
      { url: baseUrl, description: SERVER_DESCRIPTIONS[environment] },
      ...(otherEnvironmentUrl === undefined
        ? []
        : [{ url: otherEnvironmentUrl, description: SERVER_DESCRIPTIONS[other] }]),
    ],
    tags: TAGS,
    security: [{ apiKey: [] }],
    paths,
    components: {
      schemas: SCHEMAS,
      parameters: PARAMETERS,
      headers,
      responses,
      securitySchemes: {
        apiKey: {
          type: "http",
          scheme: "bearer",
          bearerFormat: `${KEY_PREFIX[environment]}…`,
          description: "An API key as a bearer token. The name of the scheme is case-insensitive.",
        },
      },
    },
    "x-responses-outside-operations": outsideOperations,
  });
}

function descriptionOf({ deprecated, description }: PetstoreOperation, settings: DocumentedSettings): string {
  return deprecated ? deprecatedDescription(deprecated, settings) : description;
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

export const TAGS: readonly { name: PetstoreOperation["tag"]; description: string }[] = [
  { name: "Pets", description: "The pets of the store." },
  {
    name: "Orders",
    description:
      "Orders for pets. An order belongs to the API key that placed it and changes the status of its pet.",
  },
  { name: "Key", description: "The API key that requests are made with." },
];

const errors = Object.entries({ ...ERRORS, ...PROTOCOL_ERRORS });
const statuses = [...new Set(errors.map(([, { status }]) => status))].toSorted((a, b) => a - b);

/** The schema of an error. Its name does not shadow `Error` in generated code. */
const ApiError: JsonSchema = {
  type: "object",
  description: "An error. `code` is for programs, `message` for people.",
  required: ["code", "message", "status"],
  properties: {
    code: {
      type: "string",
      enum: errors.map(([code]) => code),
      description:
        "Machine-readable error code. More codes may be added: a client that does not know one goes by `status`.",
    },
    message: { type: "string", minLength: 1, description: "Human-readable description" },
    status: { type: "integer", enum: statuses, description: "The HTTP status code" },
  },
  additionalProperties: false,
};

/** The schemas in `components/schemas`. */
export const SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...Object.fromEntries(Object.entries(NAMED_SCHEMAS).map(([name, { json }]) => [name, json])),
  ApiError,
};

const { limit, cursor } = OPERATIONS.listPets.query;

const CURSOR =
  'The position of the page. Opaque: follow the URL in the `Link` header with `rel="next"`. The first page has none.';

/**
 * The parameters in `components/parameters`, which several operations share. Programs that import the document send the
 * examples, so requests with all of them succeed: the cursors are those of first pages.
 */
export const PARAMETERS = {
  limit: queryParameter("limit", limit, "The maximum number of items on a page.", {
    example: PAGE_LIMIT.default,
  }),
  cursor: queryParameter("cursor", cursor, CURSOR, { example: encodeCursor("pets", 0n) }),
  ordersCursor: queryParameter("cursor", cursor, CURSOR, { example: encodeCursor("orders", 0n) }),
  "If-None-Match": {
    name: "If-None-Match",
    in: "header",
    required: false,
    description:
      "One or more `ETag`s. The response is 304 without a body if the current `ETag` is one of them.",
    schema: { type: "string" },
    example: ETAG_EXAMPLE,
  },
  "If-Match": {
    name: "If-Match",
    in: "header",
    required: false,
    description:
      "One or more `ETag`s of the order, or `*`. The order is updated only if its current `ETag` is one of them.",
    schema: { type: "string" },
    example: "*",
  },
  "Idempotency-Key": {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description:
      `Makes a retry safe. Choose a new key, for example a UUID, of up to ${IDEMPOTENCY_KEY_MAX_LENGTH} visible ASCII characters for each new operation; ` +
      `double quotes around it are optional. A retry within ${longDuration(IDEMPOTENCY_LIFETIME_MS)} gets the first successful response again.`,
    // The length includes the two double quotes.
    schema: { type: "string", minLength: 1, maxLength: IDEMPOTENCY_KEY_MAX_LENGTH + 2, pattern: "^[!-~]+$" },
    example: "5f0c6f0e-3c1b-4a7e-9d43-8a1d2c7b6e90",
  },
} as const satisfies Record<string, Parameter>;

export function parametersOf(operation: PetstoreOperation): Parameter[] {
  const { query = {}, tag, acceptsIdempotencyKey, acceptsIfMatch } = operation;
  const items = tag.toLowerCase();
  return [
    ...pathParameters(operation, 1),
    ...Object.entries(query).map(([name, schema]) => {
      if (name === "limit") return PARAMETERS.limit;
      if (name === "cursor") return tag === "Orders" ? PARAMETERS.ordersCursor : PARAMETERS.cursor;
      if (name === "id")
        return queryParameter(
          name,
          schema,
          `Only ${items} with these identifiers, separated by commas. Those that do not exist are left out.`,
          { style: "form", explode: false, example: [1, 2] },
        );
      return queryParameter(name, schema, `Only ${items} with this ${name}.`, {
        example: FILTERED[tag]?.[name],
      });
    }),
    ...(isConditionalGet(operation) ? [PARAMETERS["If-None-Match"]] : []),
    ...(acceptsIfMatch ? [PARAMETERS["If-Match"]] : []),
    ...(acceptsIdempotencyKey ? [PARAMETERS["Idempotency-Key"]] : []),
  ];
}

/** The description of a 304 response. */
export const NOT_MODIFIED = "Not modified: the current `ETag` is in `If-None-Match`. There is no body.";

function queryParameter(
  name: string,
  { json: schema }: Schema<unknown>,
  description: string,
  more: JsonSchema = {},
): Parameter {
  return { name, in: "query", required: false, description, schema, ...more };
}

const ADDED_HEADERS: Readonly<Record<number, readonly ResponseHeader[]>> = {
  401: ["WWW-Authenticate"],
};

/** The statuses of errors that have a `Retry-After`. */
const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 503]);

/** The name of an error response: `missing_api_key` and `invalid_api_key` make `MissingApiKeyOrInvalidApiKey`. */
function nameOf(codes: readonly ErrorCode[]): string {
  return codes
    .map((code) => code.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase()))
    .join("Or");
}

/** The description of the API in Markdown. The documentation has the details. */
function description({ baseUrl, environment }: DocumentedSettings): string {
  const docs = docsUrl(baseUrl);
  return [
    "A pet store over HTTP: list pets, add pets, and place, complete or cancel orders. Requests and responses are JSON. Unknown fields of a request are ignored.",
    `Send your API key with every request, as \`Authorization: Bearer ${KEY_PREFIX[environment]}…\`; see [Authentication](${docs}/authentication).`,
    `Each key has [rate limits](${docs}/rate-limits): after a 429, wait \`Retry-After\` seconds; requests before then may lead to a ban. To read a whole list, follow its [\`Link\` headers](${docs}/pagination).`,
    `A \`POST\` with an [\`Idempotency-Key\`](${docs}/idempotency) is safe to retry. [Integers](${docs}/integers) have 64 bits: read them without rounding.`,
    `Every error has one of these [codes](${docs}/errors). The [documentation](${docs}) has examples in four languages.`,
  ].join("\n");
}
