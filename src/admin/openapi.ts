import { int64, type JsonSchema, type Schema } from "../contract/schema.ts";
import { toJson } from "../contract/json.ts";
import { OrderStatus, OrderUpdate, Pet, PetStatus } from "../contract/resources.ts";
import packageJson from "../../package.json" with { type: "json" };
import { ADMIN_ERRORS, type AdminErrorCode } from "./contract/errors.ts";
import * as history from "./contract/history-resources.ts";
import * as keys from "./contract/key-resources.ts";
import {
  ADMIN_BASE_PATH,
  type AdminOperation,
  COMMON_ADMIN_ERRORS,
  OPEN_ERRORS,
} from "./contract/operation.ts";
import * as resources from "./contract/resources.ts";
import { ADMIN_OPERATIONS } from "./operations.ts";

const TAGS: readonly { name: AdminOperation["tag"]; description: string }[] = [
  { name: "Session", description: "Signing in and out." },
  { name: "Server", description: "The server that responds, its live series and its settings." },
  { name: "Keys", description: "API keys and their bans." },
  { name: "Usage", description: "How many requests each API key sent." },
  { name: "Audit", description: "Who changed what." },
  { name: "Pets", description: "Pets, which operators can correct and delete." },
  { name: "Orders", description: "Orders of all API keys." },
];

/** The OpenAPI 3.1 document of the admin API. It has the bounds of int64 as bigints. */
export function adminOpenApiDocument(): JsonSchema {
  return {
    openapi: "3.1.0",
    info: {
      title: "Petstore admin API",
      version: packageJson.version,
      summary: "What operators see and change",
      description:
        "It is on a listener of its own, for operators only. Programs send the admin token as a bearer token, browsers a session cookie. Times are RFC 3339 in UTC. Unknown fields and parameters are ignored.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: ADMIN_BASE_PATH }],
    tags: TAGS,
    security: [{ adminToken: [] }, { session: [] }],
    paths: paths(),
    components: {
      schemas: SCHEMAS,
      securitySchemes: {
        adminToken: {
          type: "http",
          scheme: "bearer",
          description: "The admin token; see `petstore admin-url`",
        },
        session: {
          type: "apiKey",
          in: "cookie",
          name: "petstore-admin",
          description: "The cookie of `createSession`, whose name ends in the port of the listener",
        },
      },
    },
  };
}

export function adminOpenApiJson(): string {
  return toJson(adminOpenApiDocument(), 2);
}

/** Schemas that have a name are references wherever they are used. */
const NAMED: Readonly<Record<string, Schema<unknown>>> = {
  ...schemasIn(keys),
  ...schemasIn(resources),
  ...schemasIn(history),
  Pet,
  PetStatus,
  OrderStatus,
  OrderUpdate,
};

/** The exports whose names begin with a capital letter. */
function schemasIn(module: Readonly<Record<string, unknown>>): Record<string, Schema<unknown>> {
  const schemas: Record<string, Schema<unknown>> = {};
  for (const [name, value] of Object.entries(module)) {
    if (/^[A-Z][a-z]/.test(name) && isSchema(value)) schemas[name] = value;
  }
  return schemas;
}

function isSchema(value: unknown): value is Schema<unknown> {
  return typeof value === "object" && value !== null && "json" in value && "read" in value;
}

const NAMES = new Map<unknown, string>(Object.entries(NAMED).map(([name, schema]) => [schema.json, name]));

/** The schema with references to those inside it that have a name. */
function withRefs(schema: unknown, isRoot = false): unknown {
  if (Array.isArray(schema)) return schema.map((item) => withRefs(item));
  if (typeof schema !== "object" || schema === null) return schema;
  const name = isRoot ? undefined : NAMES.get(schema);
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` };
  return Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, withRefs(value)]));
}

const ErrorSchema: JsonSchema = {
  type: "object",
  description: "An error. `code` is for programs, `message` for people: it names the field at fault.",
  required: ["code", "message", "status"],
  properties: {
    code: { type: "string", enum: Object.keys(ADMIN_ERRORS) },
    message: { type: "string", minLength: 1 },
    status: { type: "integer", description: "The HTTP status code" },
  },
  additionalProperties: false,
};

const SCHEMAS: JsonSchema = {
  ...Object.fromEntries(Object.entries(NAMED).map(([name, { json }]) => [name, withRefs(json, true)])),
  ApiError: ErrorSchema,
};

function paths(): JsonSchema {
  const result: Record<string, Record<string, JsonSchema>> = {};
  for (const [id, operation] of Object.entries<AdminOperation>(ADMIN_OPERATIONS)) {
    (result[operation.path] ??= {})[operation.method.toLowerCase()] = describe(id, operation);
  }
  return result;
}

function describe(operationId: string, operation: AdminOperation): JsonSchema {
  const { tag, summary, description, body, success, needsNoToken } = operation;
  const parameters = parametersOf(operation);
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    ...(needsNoToken && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: Object.keys(body.required).length > 0,
        content: { "application/json": { schema: withRefs(body.json) } },
      },
    }),
    responses: {
      [success.status]: {
        description: success.description,
        ...(success.body && {
          content: { "application/json": { schema: withRefs(success.body.json) } },
        }),
      },
      ...errorResponses(operation),
    },
  };
}

function parametersOf({ identifier, query = {} }: AdminOperation): JsonSchema[] {
  const parameters: JsonSchema[] = [];
  if (identifier) {
    const { name, description } = identifier;
    parameters.push({ name, in: "path", required: true, description, schema: int64().json });
  }
  for (const [name, { json }] of Object.entries(query)) {
    const { description = DESCRIPTIONS[name] ?? `Only items with this ${name}.` } = json;
    parameters.push({ name, in: "query", required: false, description, schema: withRefs(json) });
  }
  return parameters;
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  limit: "The maximum number of items.",
  target: "Only changes of this, such as `key:7`.",
};

function errorResponses({ errors, needsNoToken }: AdminOperation): JsonSchema {
  const codes = [...errors, ...(needsNoToken ? OPEN_ERRORS : COMMON_ADMIN_ERRORS)];
  const byStatus = Map.groupBy(codes, (code) => ADMIN_ERRORS[code].status);
  return Object.fromEntries([...byStatus].map(([status, group]) => [status, errorResponse(status, group)]));
}

const RETRY_AFTER = {
  "Retry-After": { description: "Seconds to wait", schema: { type: "integer", minimum: 1 } },
};

function errorResponse(status: number, codes: readonly AdminErrorCode[]): JsonSchema {
  const restriction = { properties: { code: { enum: codes }, status: { const: status } } };
  return {
    description: codes.map((code) => `\`${code}\`: ${ADMIN_ERRORS[code].meaning}`).join("\n\n"),
    ...((status === 429 || status === 503) && { headers: RETRY_AFTER }),
    content: {
      "application/json": { schema: { allOf: [{ $ref: "#/components/schemas/ApiError" }, restriction] } },
    },
  };
}
