import { errorsOf } from "../api/api.ts";
import { toJson } from "../api/json.ts";
import {
  errorSchema,
  meaningsOf,
  openApiPaths,
  type Parameter,
  pathParameters,
  withReferences,
} from "../api/openapi.ts";
import { type JsonSchema, type Schema, text } from "../api/schema.ts";
import { leastRoleOf } from "../domain/operators.ts";
import { NewPet, OrderStatus, OrderUpdate, Pet, PetStatus, PetUpdate } from "../domain/pets-and-orders.ts";
import { ADMIN_API } from "./api.ts";
import { changesCredentials } from "./sign-in/credential-rules.ts";
import { ADMIN_ERRORS, type AdminErrorCode } from "./errors.ts";
import { apiErrorSchema, inputProblem } from "./error-schema.ts";
import * as history from "./history-schemas.ts";
import * as keys from "./key-schemas.ts";
import {
  type AdminOperation,
  type AdminOperationId,
  COMMON_ADMIN_ERRORS,
  UNAUTHENTICATED_ERRORS,
  SESSION_HEADER,
} from "./operations.ts";
import { Reasoned } from "./operation-rows.ts";
import * as operators from "./operator-schemas.ts";
import { AdminOrder, OrderPage, PetPage } from "./pet-and-order-operations.ts";
import { BanRulesUpdate, BanRulesView, PlanLimits, PlanList, PlanUpdate } from "./policy-operations.ts";
import * as servers from "./server-schemas.ts";
import * as sessions from "./session-schemas.ts";

import packageJson from "../../package.json" with { type: "json" };

const TAGS: readonly { name: AdminOperation["tag"]; description: string }[] = [
  { name: "Session", description: "Signing in and out." },
  { name: "Operators", description: "Operators, their roles and their tokens." },
  { name: "Server", description: "The server that responds, its live series and its settings." },
  { name: "Keys", description: "API keys and their bans." },
  { name: "Plans", description: "Limits of the plans and ban rules, which all servers share." },
  { name: "Usage", description: "How many requests each API key sent." },
  { name: "Requests", description: "The last requests of clients." },
  { name: "Audit", description: "Who changed what." },
  { name: "Pets", description: "Pets, which operators can correct and delete." },
  { name: "Orders", description: "Orders of all API keys." },
];

/** The OpenAPI 3.1 document of the admin API. The bounds of int64 are bigints. */
export function adminOpenApiJson(): string {
  const document = withReferences({
    openapi: "3.1.0",
    info: {
      title: "Petstore admin API",
      version: packageJson.version,
      summary: "What operators see and change",
      description: `It is on a listener of its own, for operators only. Programs send the token of an operator as a bearer token; browsers have a session: a cookie, and the header \`${SESSION_HEADER}\`. Each operation says the least role that may call it. Times are RFC 3339 in UTC. Unknown fields and parameters are ignored.`,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: ADMIN_API.basePath }],
    tags: TAGS,
    security: [{ adminToken: [] }, { session: [] }],
    paths: paths(),
    components: {
      schemas: SCHEMAS,
      securitySchemes: {
        adminToken: {
          type: "http",
          scheme: "bearer",
          description: "The token of an operator; see `petstore operators create`",
        },
        session: {
          type: "apiKey",
          in: "cookie",
          name: "petstore-admin",
          description: `The cookie of \`createSession\`, whose name ends in the port of the listener; it needs the header \`${SESSION_HEADER}\` with the secret of \`createSession\``,
        },
      },
    },
  });
  return toJson(document, 2);
}

/**
 * The schemas in a module: the exports whose names begin with a capital letter. The suffix `Schema` distinguishes an
 * export from a type of `domain` with the same name.
 */
function schemasIn(module: Readonly<Record<string, unknown>>): Record<string, JsonSchema> {
  const schemas: Record<string, JsonSchema> = {};
  for (const [name, value] of Object.entries(module)) {
    if (/^[A-Z][a-z]/.test(name) && isSchema(value)) schemas[name.replace(/Schema$/, "")] = value.json;
  }
  return schemas;
}

function isSchema(value: unknown): value is Schema<unknown> {
  return typeof value === "object" && value !== null && "json" in value && "read" in value;
}

/** Exports of several modules in the order in which one module has its exports. */
function byName(exports: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(exports).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

const ApiErrorSchema = apiErrorSchema(text(100, { enum: Object.keys(ADMIN_ERRORS) }));

/** The list of servers keeps the name that its schema has had. */
const { ServerList: Fleet, ...serverSchemas } = servers;

const SCHEMAS: JsonSchema = {
  ...schemasIn(keys),
  ...schemasIn(
    byName({ ...serverSchemas, Fleet, ...operators, ...sessions, AdminOrder, OrderPage, PetPage }),
  ),
  ...schemasIn(history),
  ...schemasIn({ PlanLimits, PlanList, PlanUpdate, BanRulesView, BanRulesUpdate }),
  ...schemasIn({ Pet, NewPet, PetStatus, PetUpdate, OrderStatus, OrderUpdate, Reasoned }),
  ...schemasIn({ InputProblem: inputProblem, ApiErrorSchema }),
};

function paths(): JsonSchema {
  return openApiPaths<AdminOperationId, AdminOperation>(ADMIN_API, {
    parametersOf,
    errorResponse,
    errorsOf: (operation) => [
      ...new Set([
        ...errorsOf(operation),
        ...(operation.needsNoToken ? UNAUTHENTICATED_ERRORS : COMMON_ADMIN_ERRORS),
        ...(changesCredentials(operation) ? (["replaced_token"] as const) : []),
      ]),
    ],
    flags: (operation) =>
      operation.needsNoToken
        ? { security: [] }
        : { description: `${operation.description} Needs the role \`${leastRoleOf(operation)}\`.` },
  });
}

function parametersOf(operation: AdminOperation): Parameter[] {
  const query = Object.entries(operation.query ?? {}).map(([name, schema]) => {
    const description = schema.json["description"] ?? DESCRIPTIONS[name] ?? `Only items with this ${name}.`;
    return {
      name,
      in: "query",
      required: false,
      description: String(description),
      schema: schema.json,
    } as const;
  });
  return [...pathParameters(operation), ...query];
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  limit: "The maximum number of items.",
  target: "Only changes of this, such as `key:7`.",
};

const RETRY_AFTER = {
  "Retry-After": { description: "Seconds to wait", schema: { type: "integer", minimum: 1 } },
};

function errorResponse(status: number, codes: readonly AdminErrorCode[]): JsonSchema {
  return {
    description: meaningsOf(ADMIN_ERRORS, codes),
    ...((status === 429 || status === 503) && { headers: RETRY_AFTER }),
    content: { "application/json": { schema: errorSchema(ApiErrorSchema.json, status, codes) } },
  };
}
