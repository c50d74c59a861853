import type { InputOf, RejectionOf, SuccessBodyOf } from "../api/api.ts";
import { dateTime, line, queryIdentifier, queryInteger } from "../api/schema.ts";
import { MAX_ROWS_SEARCHED } from "../domain/size-limits.ts";
import { DAILY_USAGE_DAYS, HOURLY_USAGE_DAYS } from "../domain/usage-history.ts";
import * as history from "./history-schemas.ts";
import {
  created,
  cursor,
  EVERY_OPERATOR,
  limit,
  ok,
  Reasoned,
  SESSION_HEADER,
  since,
  tagged,
  until,
  USAGE_LIMIT,
} from "./operation-rows.ts";
import * as operators from "./operator-schemas.ts";
import { KEY_OPERATIONS } from "./key-operations.ts";
import { ORDER_OPERATIONS, PET_OPERATIONS } from "./pet-and-order-operations.ts";
import { POLICY_OPERATIONS } from "./policy-operations.ts";
import { SERVER_OPERATIONS } from "./server-operations.ts";
import * as sessions from "./session-schemas.ts";

/** The period of the usage history. Its first and last hours or days count in full. */
const period = {
  since: dateTime("In the first hour or day"),
  until: dateTime("In the last hour or day, which is included; by default now"),
};

/**
 * The table of operations of the admin API. The router, the validation, the OpenAPI document and the types of the
 * handlers and of the console derive from it.
 */
export const ADMIN_OPERATIONS = {
  ...tagged("Session", {
    createSession: {
      method: "POST",
      path: "/session",
      audited: "admin.signed-in",
      summary: "Sign in",
      description: `Trades a token, a code or the response of a provider for a session, for browsers: a cookie, and a secret that the page sends as the header \`${SESSION_HEADER}\`. It is valid for 12 hours, and no longer than the token. Programs send the token in every request instead: \`Authorization: Bearer <token>\`.`,
      body: sessions.NewSession,
      success: ok("The session; `Set-Cookie` has the cookie", sessions.CreatedSession),
      errors: [
        "invalid_token",
        "invalid_code",
        "rejected_sign_in",
        "refused_sign_in",
        "no_provider",
        "provider_unavailable",
        "too_many_attempts",
        "too_many_requests",
        "forbidden_role",
      ],
      needsNoToken: true,
      needsRequest: true,
    },
    beginSignIn: {
      method: "POST",
      path: "/session/provider",
      audited: "nothing",
      summary: "Begin to sign in with the provider",
      description:
        "For browsers: responds with the URL of the provider (OpenID Connect), and with what the page keeps until the provider has sent the browser back. `createSession` takes both.",
      success: ok("Where to sign in", sessions.BegunSignIn),
      errors: ["no_provider", "provider_unavailable", "too_many_attempts"],
      needsNoToken: true,
      needsRequest: true,
    },
    createSignInCode: {
      method: "POST",
      path: "/session/code",
      audited: "nothing",
      summary: "Make a code for the command line",
      description:
        "Makes a code for `petstore login`, for an operator who signs in with a provider and has no token. Its session ends as theirs does, 12 hours after they signed in.",
      success: ok("The code", sessions.CreatedCode),
      errors: ["no_provider"],
      makesCredential: true,
      role: "viewer",
      needsRequest: true,
    },
    getSession: {
      method: "GET",
      path: "/session",
      summary: "Show who is signed in",
      description: "Shows the operator of the session or of the token. Responds without either, too.",
      success: ok("The session", sessions.Session),
      errors: ["too_many_attempts"],
      needsNoToken: true,
      needsRequest: true,
    },
    deleteSession: {
      method: "DELETE",
      path: "/session",
      audited: "admin.signed-out",
      summary: "Sign out",
      description: "Ends the session of the cookie and the secret: on every server, within a second.",
      success: { status: 204, description: "The session is over" },
      needsNoToken: true,
      needsRequest: true,
    },
    deleteSessions: {
      method: "DELETE",
      path: "/sessions",
      audited: "admin.signed-out",
      summary: "Sign out everywhere",
      description:
        "Ends all sessions of the operator who sends it, and the codes that nobody has used: on every server, within a second. The token stays valid.",
      success: { status: 204, description: "The sessions are over" },
      role: "viewer",
    },
  }),
  ...tagged("Operators", {
    listOperators: {
      method: "GET",
      path: "/operators",
      summary: "List the operators with their roles",
      description:
        "Lists the operators, oldest first, also those that are revoked. Of a token it shows the first and the last characters; the whole is not stored. The last use is to the hour.",
      success: ok("The operators", operators.Operators),
    },
    createOperator: {
      method: "POST",
      path: "/operators",
      audited: "operator.created",
      summary: "Create an operator",
      description:
        "Creates an operator and responds with their token, which is shown only this once. From `expiresAt` on, the token and its sessions get 401. A name is not used again after its operator is revoked: the audit trail has it.",
      body: operators.NewOperatorSchema,
      success: created("The new operator and their token", operators.OperatorWithToken),
      errors: ["operator_exists", "too_many_operators"],
    },
    updateOperator: {
      method: "PATCH",
      path: "/operators/{operatorId}",
      audited: "operator.updated",
      summary: "Change the role or the expiry of an operator",
      description:
        "Tokens and sessions follow on every server within a second. An operator who has expired is let in again with a new expiry. The last admin whose token does not expire keeps the role, and gets no expiry. An operator who signs in with a provider gets no higher role and no later expiry.",
      body: operators.OperatorUpdate,
      success: ok("The changed operator", operators.OperatorSchema),
      errors: ["operator_not_active", "operator_of_provider", "last_admin"],
    },
    rotateOperator: {
      method: "POST",
      path: "/operators/{operatorId}/rotate",
      audited: "operator.rotated",
      summary: "Replace the token of an operator",
      description:
        "Makes a new token, which is shown only this once. The earlier ones stop working and the operator's other sessions end when the overlap is over, by default at once: on every server within a second. Every operator may replace their own token, with the newest one or a session of it; that of somebody else needs the role admin.",
      body: operators.OperatorRotation,
      success: ok("The operator and their new token", operators.OperatorWithToken),
      errors: ["operator_not_active", "forbidden_role", "invalid_token", "too_many_attempts"],
      // That of somebody else needs the role admin, which the handler checks.
      role: EVERY_OPERATOR,
    },
    revokeOperator: {
      method: "POST",
      path: "/operators/{operatorId}/revoke",
      audited: "operator.revoked",
      summary: "Revoke an operator for good",
      description:
        "Ends the token and the sessions of the operator, on every server within a second. This cannot be undone. Nobody can revoke themselves, or the last admin whose token does not expire. An operator who is already revoked stays so.",
      body: Reasoned,
      success: ok("The revoked operator", operators.OperatorSchema),
      errors: ["own_operator", "last_admin"],
    },
  }),
  ...SERVER_OPERATIONS,
  ...KEY_OPERATIONS,
  ...POLICY_OPERATIONS,
  ...tagged("Usage", {
    getKeyUsage: {
      method: "GET",
      path: "/keys/{keyId}/usage",
      cost: 2,
      summary: "Show the requests of an API key over time",
      description: `Hours are kept for ${HOURLY_USAGE_DAYS} days, days for ${DAILY_USAGE_DAYS} days. By default the last 24 hours by hour, or the last 30 days by day. Counts are at most 5 seconds old.`,
      query: { by: history.Interval, ...period },
      success: ok("Requests by interval and operation", history.KeyUsageHistory),
    },
    getUsage: {
      method: "GET",
      path: "/usage",
      cost: 30,
      summary: "Show the requests of all API keys",
      description: "Adds up the requests of each key in a period: by default the last 30 days.",
      query: {
        by: history.Interval,
        ...period,
        limit: queryInteger(USAGE_LIMIT),
        cursor: cursor("usage"),
      },
      maxRowsRead: Infinity,
      success: ok("Requests by key, most used first", history.UsageTotals),
    },
  }),
  ...tagged("Requests", {
    listRequests: {
      method: "GET",
      path: "/requests",
      cost: 2,
      summary: "List the last requests of clients",
      description:
        "Lists the requests that meet every condition, newest first. Each server keeps its last requests in memory, as many as `--request-log` has room for: the server that responds asks all others that share the rate limits. `servers` names those whose requests are missing, and why.",
      query: { ...history.requestConditions, since, until, limit, cursor: cursor("requests") },
      needsRunningServer: true,
      maxRowsRead: Infinity,
      success: ok("A page of requests", history.RequestPage),
    },
  }),
  ...tagged("Audit", {
    listAudit: {
      method: "GET",
      path: "/audit",
      cost: 2,
      summary: "List changes",
      description:
        "Lists who changed what, newest first, or with `after` oldest first. Several filters look at 5,000 entries for a page, so a page with few entries, or none, may have a `nextCursor`.",
      query: {
        action: history.Action,
        operator: line(64, "Name of the operator"),
        actor: history.ActorKind,
        target: history.target,
        since,
        until,
        after: queryIdentifier("Only entries that were written after the one with this identifier"),
        limit,
        cursor: cursor("audit"),
      },
      maxRowsRead: MAX_ROWS_SEARCHED,
      success: ok("A page of the audit trail", history.AuditPage),
    },
  }),
  ...PET_OPERATIONS,
  ...ORDER_OPERATIONS,
} as const;

export const ADMIN_BASE_PATH = "/api";

type Table = typeof ADMIN_OPERATIONS;
export type AdminOperationId = keyof Table;
/** The operations that a command or another server asks a server for: they need what servers have in memory. */
export type RunningServerOperationId = {
  [Id in AdminOperationId]: Table[Id] extends { readonly needsRunningServer: true } ? Id : never;
}[AdminOperationId];

export type AdminInput<Id extends AdminOperationId> = InputOf<Table[Id]>;
export type QueryOf<Id extends AdminOperationId> = AdminInput<Id>["query"];
export type BodyOf<Id extends AdminOperationId> = AdminInput<Id>["body"];
/** The body of a successful response; undefined for 204. */
export type ResponseOf<Id extends AdminOperationId> = SuccessBodyOf<Table[Id]>;
export type AdminRejectionOf<Id extends AdminOperationId> = RejectionOf<Table[Id]>;

export type { AdminErrorCode } from "./errors.ts";
export * from "./operation-rows.ts";
export type * from "./history-schemas.ts";
export type * from "./key-schemas.ts";
export type * from "./operator-schemas.ts";
export type * from "./pet-and-order-operations.ts";
export type * from "./policy-operations.ts";
export type * from "./server-schemas.ts";
export type * from "./session-schemas.ts";
