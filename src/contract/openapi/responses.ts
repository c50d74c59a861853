import type { DocumentedSettings } from "../documented-settings.ts";
import { ERRORS, type ErrorCode } from "../errors.ts";
import { COMMON_ERRORS, OPERATIONS, type Operation, type OperationId } from "../operations.ts";
import type { JsonSchema } from "../schema.ts";
import { errorExample, EXAMPLES } from "./examples.ts";
import {
  ALLOW,
  DEPRECATION_HEADERS,
  headersOf,
  optionalDeprecationHeaders,
  type ResponseHeader,
} from "./headers.ts";
import { errorSchema, successSchema } from "./component-schemas.ts";

const ADDED_HEADERS: Readonly<Record<number, readonly ResponseHeader[]>> = {
  401: ["WWW-Authenticate"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};

/** Every response of an operation, by status. */
export function responsesOf(id: OperationId, settings: DocumentedSettings): JsonSchema {
  const operation: Operation = OPERATIONS[id];
  const responses: Record<string, JsonSchema> = { [operation.success.status]: successResponse(id) };
  if (operation.success.headers.includes("ETag")) responses["304"] = notModified(operation);
  for (const [status, codes] of errorsOf(operation)) {
    const headers = deprecationHeaders(operation, codes, settings);
    responses[status] = headers ? errorResponse({ status, codes, headers }, settings) : responseRef(codes);
  }
  return responses;
}

/** Error responses in `components`, named after their codes. Operations share them. */
export function sharedResponses(settings: DocumentedSettings): JsonSchema {
  const shared: Record<string, JsonSchema> = {};
  for (const operation of Object.values<Operation>(OPERATIONS)) {
    for (const [status, codes] of errorsOf(operation)) {
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
  operation: Operation,
  codes: readonly ErrorCode[],
  settings: DocumentedSettings,
): JsonSchema | undefined {
  if (!operation.deprecated) return undefined;
  if (codes.some((code) => operation.errors.includes(code))) return headersOf(DEPRECATION_HEADERS, operation);
  return codes.some((code) => ERRORS[code].status >= 500) ? optionalDeprecationHeaders(settings) : undefined;
}

/** Responses that belong to no operation, in an extension because OpenAPI has no place for them. */
export function responsesOutsideOperations(settings: DocumentedSettings): JsonSchema {
  const responses: Record<string, JsonSchema> = {
    "204": {
      description: "The response to OPTIONS. `Allow` lists the methods of the path.",
      headers: { ...headersOf([]), Allow: ALLOW },
    },
    "403": errorResponse({ status: 403, codes: ["read_only_key"] }, settings),
    "404": errorResponse({ status: 404, codes: ["not_found"] }, settings),
    "405": errorResponse({ status: 405, codes: ["method_not_allowed"], headers: { Allow: ALLOW } }, settings),
  };
  for (const [status, codes] of byStatus(COMMON_ERRORS)) {
    responses[status] = responseRef(codes);
  }
  return responses;
}

function successResponse(id: OperationId): JsonSchema {
  const operation: Operation = OPERATIONS[id];
  const { description, headers } = operation.success;
  const body = { schema: successSchema(operation.success), examples: EXAMPLES[id].success };
  return { description, headers: headersOf(headers, operation), content: { "application/json": body } };
}

function notModified(operation: Operation): JsonSchema {
  const description = "Not modified: the current `ETag` is in `If-None-Match`. There is no body.";
  return { description, headers: headersOf(operation.success.headers, operation) };
}

interface ErrorResponse {
  readonly status: number;
  readonly codes: readonly ErrorCode[];
  readonly headers?: JsonSchema;
}

function errorResponse({ status, codes, headers }: ErrorResponse, settings: DocumentedSettings): JsonSchema {
  const meanings = codes.map((code) => `\`${code}\`: ${ERRORS[code].meaning}`);
  const examples = codes.map((code) => [code, errorExample(code, settings)]);
  return {
    description: meanings.join("\n\n"),
    headers: { ...headersOf(ADDED_HEADERS[status] ?? []), ...headers },
    content: {
      "application/json": { schema: errorSchema(status, codes), examples: Object.fromEntries(examples) },
    },
  };
}

function errorsOf({ errors }: Operation): [number, ErrorCode[]][] {
  return byStatus([...errors, ...COMMON_ERRORS]);
}

function byStatus(codes: readonly ErrorCode[]): [number, ErrorCode[]][] {
  return [...Map.groupBy(codes, (code) => ERRORS[code].status)];
}

/** `missing_api_key`, `invalid_api_key` → `MissingApiKeyOrInvalidApiKey`. */
function nameOf(codes: readonly ErrorCode[]): string {
  return codes
    .map((code) => code.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase()))
    .join("Or");
}
