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
import {
  type AdminOperation,
  type AdminOperationId,
  COMMON_ADMIN_ERRORS,
  UNAUTHENTICATED_ERRORS,
  SESSION_HEADER,
} from "./operations.ts";
import * as audit from "./operations/audit.ts";
import * as keys from "./operations/keys.ts";
import * as operators from "./operations/operators.ts";
import { Overview } from "./operations/overview.ts";
import { AdminOrder, OrderPage, PetPage } from "./operations/pets-and-orders.ts";
import * as policy from "./operations/policy.ts";
import { RequestPage } from "./operations/requests.ts";
import { Reasoned } from "./operations/rows.ts";
import { Range, ServerSeries } from "./operations/series.ts";
import { Server, ServerList } from "./operations/servers.ts";
import * as sessions from "./operations/sessions.ts";
import { Settings } from "./operations/settings.ts";
import * as usage from "./operations/usage.ts";
import { Webhook, WebhookTest } from "./operations/webhook.ts";

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

const ApiErrorSchema = apiErrorSchema(text(100, { enum: Object.keys(ADMIN_ERRORS) }));

/** The schemas by their names, which stay: clients that are generated from the document have them. */
const NAMED_SCHEMAS: Readonly<Record<string, Schema<unknown>>> = {
  Access: keys.AccessSchema,
  CreatedKey: keys.CreatedKey,
  FoundKey: keys.FoundKey,
  Key: keys.Key,
  KeyPage: keys.KeyPage,
  KeyRotation: keys.KeyRotation,
  KeySearch: keys.KeySearch,
  KeyState: keys.KeyStateSchema,
  KeyUpdate: keys.KeyUpdate,
  KeyUsage: keys.KeyUsage,
  NewKey: keys.NewKeySchema,
  Plan: keys.Plan,
  RotatedKey: keys.RotatedKey,
  AdminOrder,
  BegunSignIn: sessions.BegunSignIn,
  CreatedCode: sessions.CreatedCode,
  CreatedSession: sessions.CreatedSession,
  Fleet: ServerList,
  NewOperator: operators.NewOperatorSchema,
  NewSession: sessions.NewSession,
  OperatorRotation: operators.OperatorRotation,
  Operator: operators.OperatorSchema,
  OperatorUpdate: operators.OperatorUpdate,
  OperatorWithToken: operators.OperatorWithToken,
  Operators: operators.Operators,
  OrderPage,
  PetPage,
  Server,
  Session: sessions.Session,
  Settings,
  Webhook,
  WebhookTest,
  Action: audit.Action,
  ActorKind: audit.ActorKind,
  AuditPage: audit.AuditPage,
  Interval: usage.Interval,
  KeyUsageHistory: usage.KeyUsageHistory,
  Overview,
  Range,
  RequestPage,
  ServerSeries,
  UsageTotals: usage.UsageTotals,
  PlanLimits: policy.PlanLimits,
  PlanList: policy.PlanList,
  PlanUpdate: policy.PlanUpdate,
  BanRulesView: policy.BanRulesView,
  BanRulesUpdate: policy.BanRulesUpdate,
  Pet,
  NewPet,
  PetStatus,
  PetUpdate,
  OrderStatus,
  OrderUpdate,
  Reasoned,
  InputProblem: inputProblem,
  ApiError: ApiErrorSchema,
};

const SCHEMAS: JsonSchema = Object.fromEntries(
  Object.entries(NAMED_SCHEMAS).map(([name, { json }]) => [name, json]),
);

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
