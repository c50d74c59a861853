import { baseUrlOf, type DocumentedSettings } from "./documented-settings.ts";
import { type ErrorCode, ERRORS } from "./errors.ts";
import { toJson } from "../api/json.ts";
import { description } from "./openapi/description.ts";
import { errorExample, EXAMPLES } from "./openapi/examples.ts";
import { PARAMETERS, parametersOf } from "./openapi/document.ts";
import { OPERATIONS, type PetstoreOperation } from "./operations.ts";
import type { OperationId } from "../domain/usage-history.ts";
import type { JsonSchema } from "../api/schema.ts";

const SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";

/**
 * The API as a Postman collection (format 2.1), as JSON text. Its variables are `baseUrl` and `apiKey`; the second is
 * empty, because a collection is made to be shared.
 */
export function postmanCollection(settings: DocumentedSettings): string {
  const tags = Object.groupBy(
    Object.entries<PetstoreOperation>(OPERATIONS) as [OperationId, PetstoreOperation][],
    ([, { tag }]) => tag,
  );
  const collection = {
    info: { name: "Petstore", description: description(settings), schema: SCHEMA },
    auth: { type: "bearer", bearer: [{ key: "token", value: "{{apiKey}}", type: "string" }] },
    variable: [
      { key: "baseUrl", value: baseUrlOf(settings) },
      { key: "apiKey", value: "" },
    ],
    item: Object.entries(tags).map(([name, operations]) => ({
      name,
      item: operations.map(([id, operation]) => itemOf(id, operation, settings)),
    })),
  };
  return toJson(collection, 2);
}

function itemOf(id: OperationId, operation: PetstoreOperation, settings: DocumentedSettings): JsonSchema {
  const request = requestOf(id, operation);
  const { status } = operation.success;
  const successes = Object.values(EXAMPLES[id].success).map(({ summary, value }) =>
    savedResponse({ name: summary, status, value, request }),
  );
  const errors = operation.errors.map((code: ErrorCode) => {
    const { value } = errorExample(code, settings);
    return savedResponse({ name: code, status: ERRORS[code].status, value, request });
  });
  return { name: operation.summary, request, response: [...successes, ...errors] };
}

function requestOf(id: OperationId, operation: PetstoreOperation): JsonSchema {
  const { method, path, description } = operation;
  const parameters = parametersOf(operation).map((parameter) => withExample(resolve(parameter), operation));
  const [example] = Object.values(EXAMPLES[id].request ?? {});
  const body = example && {
    mode: "raw",
    raw: toJson(example.value, 2),
    options: { raw: { language: "json" } },
  };
  const headers = inactive(parameters, "header");
  return {
    method,
    description,
    header: body ? [{ key: "Content-Type", value: "application/json" }, ...headers] : headers,
    url: urlOf(path, parameters),
    ...(body && { body }),
  };
}

/** Postman writes a path parameter as `:petId`. */
function urlOf(path: string, parameters: readonly JsonSchema[]): JsonSchema {
  const target = path.replace(/\{(\w+)\}/, ":$1");
  const inPath = parameters.filter((parameter) => parameter["in"] === "path");
  return {
    raw: `{{baseUrl}}${target}`,
    host: ["{{baseUrl}}"],
    path: target.slice(1).split("/"),
    query: inactive(parameters, "query"),
    variable: inPath.map(({ name, example, description }) => ({
      key: name,
      value: String(example),
      description,
    })),
  };
}

/** Optional parameters are listed and not sent until the user activates them. */
function inactive(parameters: readonly JsonSchema[], place: "query" | "header"): JsonSchema[] {
  const chosen = parameters.filter((parameter) => parameter["in"] === place);
  return chosen.map(({ name, description, example }) => ({
    key: name,
    value: String(example),
    description,
    disabled: true,
  }));
}

/** Where the OpenAPI document has no example. Postman replaces `{{$guid}}` with a new UUID for each request. */
const VALUES: Readonly<Record<string, string>> = { id: "1", "Idempotency-Key": "{{$guid}}" };

function withExample(parameter: JsonSchema, { query = {} }: PetstoreOperation): JsonSchema {
  const name = String(parameter["name"]);
  const { enum: values } = query[name]?.json ?? {};
  const first: unknown = Array.isArray(values) ? values[0] : undefined;
  return { example: VALUES[name] ?? first ?? "", ...parameter };
}

const REFERENCE = "#/components/parameters/";

function resolve(parameter: JsonSchema): JsonSchema {
  const { $ref } = parameter;
  if (typeof $ref !== "string") return parameter;
  const name = $ref.slice(REFERENCE.length);
  return Object.entries<JsonSchema>(PARAMETERS).find(([key]) => key === name)?.[1] ?? parameter;
}

interface SavedResponse {
  readonly name: string;
  readonly status: number;
  readonly value: unknown;
  readonly request: JsonSchema;
}

function savedResponse({ name, status, value, request }: SavedResponse): JsonSchema {
  return {
    name,
    originalRequest: request,
    code: status,
    _postman_previewlanguage: "json",
    header: [{ key: "Content-Type", value: "application/json" }],
    body: toJson(value, 2),
  };
}
