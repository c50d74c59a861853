import { KEY_PREFIX } from "../constants.ts";
import { toJson } from "../json.ts";
import { EXAMPLES } from "./examples.ts";
import { HEADERS } from "./headers.ts";
import { PARAMETERS, parametersOf } from "./parameters.ts";
import { description, type DocumentedSettings } from "./description.ts";
import { responsesOf, responsesOutsideOperations, sharedResponses } from "./responses.ts";
import { SCHEMAS, schemaRef } from "./component-schemas.ts";
import { OPERATIONS, type Operation, type OperationId } from "../operations.ts";
import type { JsonSchema } from "../schema.ts";

export interface OpenApiOptions extends DocumentedSettings {
  /** Base URLs, including the base path, without a trailing slash. */
  readonly servers: { readonly production: string; readonly staging: string };
  /** The environment of the server that serves the document: it comes first, and the examples use it. */
  readonly current?: "production" | "staging";
}

/** The OpenAPI 3.1 document. It has the bounds of int64 as bigints; `openApiJson` writes them exactly. */
export function openApiDocument({
  servers,
  current = "production",
  ...settings
}: OpenApiOptions): JsonSchema {
  const production = {
    url: servers.production,
    description: `Production: keys begin with \`${KEY_PREFIX.production}\``,
  };
  const staging = {
    url: servers.staging,
    description: `Staging, with separate data: keys begin with \`${KEY_PREFIX.staging}\``,
  };
  return {
    openapi: "3.1.0",
    info: {
      title: "Petstore",
      version: "1.0.0",
      summary: "A pet store over HTTP",
      description: description(servers[current], settings),
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: current === "production" ? [production, staging] : [staging, production],
    tags: TAGS,
    security: [{ apiKey: [] }],
    paths: paths(),
    components: {
      schemas: SCHEMAS,
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: sharedResponses(),
      securitySchemes: { apiKey: API_KEY },
    },
    "x-responses-outside-operations": responsesOutsideOperations(),
  };
}

/** The document as JSON text. */
export function openApiJson(options: OpenApiOptions): string {
  return toJson(openApiDocument(options), 2);
}

const TAGS: readonly { name: Operation["tag"]; description: string }[] = [
  { name: "Pets", description: "The pets of the store." },
  { name: "Orders", description: "Orders for pets. An order changes the status of its pet." },
];

const API_KEY = {
  type: "http",
  scheme: "bearer",
  bearerFormat: Object.values(KEY_PREFIX)
    .map((prefix) => `${prefix}…`)
    .join(" or "),
  description: "An API key as a bearer token. The name of the scheme is case-insensitive.",
};

function paths(): JsonSchema {
  const result: Record<string, Record<string, JsonSchema>> = {};
  for (const [id, operation] of Object.entries<Operation>(OPERATIONS) as [OperationId, Operation][]) {
    (result[operation.path] ??= {})[operation.method.toLowerCase()] = describe(id, operation);
  }
  return result;
}

function describe(operationId: OperationId, operation: Operation): JsonSchema {
  const { tag, summary, description, body, deprecated } = operation;
  const examples = EXAMPLES[operationId].request;
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    ...(deprecated ? { deprecated: true } : {}),
    parameters: parametersOf(operation),
    ...(body
      ? {
          requestBody: {
            required: true,
            content: { "application/json": { schema: schemaRef(body), examples } },
          },
        }
      : {}),
    responses: responsesOf(operationId),
  };
}
