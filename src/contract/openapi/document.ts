import { KEY_PREFIX } from "../constants.ts";
import { baseUrlOf, docsUrl, type DocumentedSettings } from "../documented-settings.ts";
import { toJson } from "../json.ts";
import { EXAMPLES } from "./examples.ts";
import { componentHeaders } from "./headers.ts";
import { PARAMETERS, parametersOf } from "./parameters.ts";
import { description } from "./description.ts";
import { responsesOf, responsesOutsideOperations, sharedResponses } from "./responses.ts";
import { SCHEMAS, schemaRef } from "./component-schemas.ts";
import { OPERATIONS, type Operation, type OperationId } from "../operations.ts";
import type { JsonSchema } from "../schema.ts";
import { toYaml } from "../yaml.ts";

/** The OpenAPI 3.1 document. It has the bounds of int64 as bigints; `openApiJson` writes them exactly. */
export function openApiDocument(settings: DocumentedSettings): JsonSchema {
  const { environment, servers } = settings;
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
      description: description(settings),
      contact: { name: "Petstore", url: docsUrl(baseUrlOf(settings)) },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: environment === "production" ? [production, staging] : [staging, production],
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

const TAGS: readonly { name: Operation["tag"]; description: string }[] = [
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
  const result: Record<string, Record<string, JsonSchema>> = {};
  for (const [id, operation] of Object.entries<Operation>(OPERATIONS) as [OperationId, Operation][]) {
    (result[operation.path] ??= {})[operation.method.toLowerCase()] = describe(id, operation, settings);
  }
  return result;
}

function describe(operationId: OperationId, operation: Operation, settings: DocumentedSettings): JsonSchema {
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
    responses: responsesOf(operationId, settings),
  };
}
