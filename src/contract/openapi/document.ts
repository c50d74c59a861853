import { toJson } from "../json.ts";
import { EXAMPLES } from "./examples.ts";
import { HEADERS } from "./headers.ts";
import { PARAMETERS, parametersOf } from "./parameters.ts";
import { introduction } from "./description.ts";
import { responsesOf, responsesOutsideOperations, sharedResponses } from "./responses.ts";
import { SCHEMAS, schemaRef } from "./component-schemas.ts";
import { OPERATIONS, type Operation, type OperationId } from "../operations.ts";
import type { JsonSchema } from "../schema.ts";

export interface OpenApiOptions {
  /** Base addresses, `/v1` included, without a trailing slash. */
  readonly servers: { readonly production: string; readonly staging: string };
  /** The environment that hands the document out: its server comes first, and the examples use it. */
  readonly current?: "production" | "staging";
}

/** The OpenAPI 3.1 document. The bounds of int64 are bigints in it; `openApiJson` writes them exactly. */
export function openApiDocument({ servers, current = "production" }: OpenApiOptions): JsonSchema {
  const production = { url: servers.production, description: "Production: keys begin with `pet_live_`" };
  const staging = {
    url: servers.staging,
    description: "Staging, with data of its own: keys begin with `pet_test_`",
  };
  return {
    openapi: "3.1.0",
    info: {
      title: "Petstore",
      version: "1.0.0",
      summary: "A pet store over HTTP, exact in its limits and its integers",
      description: introduction(servers[current]),
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
  { name: "Pets", description: "What the store has to offer." },
  { name: "Orders", description: "Who takes which pet home. Orders move the status of their pets." },
];

const API_KEY = {
  type: "http",
  scheme: "bearer",
  bearerFormat: "pet_live_… or pet_test_…",
  description: "An API key as a bearer token. The scheme's name may be written in any case.",
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
