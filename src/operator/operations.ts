import type { InputOf, RejectionOf, SuccessBodyOf } from "../api/api.ts";
import type { AdminOperation } from "./operations/rows.ts";
import { AUDIT_OPERATIONS } from "./operations/audit.ts";
import { KEY_OPERATIONS } from "./operations/keys.ts";
import { OPERATOR_OPERATIONS } from "./operations/operators.ts";
import { OVERVIEW_OPERATIONS } from "./operations/overview.ts";
import { ORDER_OPERATIONS, PET_OPERATIONS } from "./operations/pets-and-orders.ts";
import { POLICY_OPERATIONS } from "./operations/policy.ts";
import { REQUEST_OPERATIONS } from "./operations/requests.ts";
import { SERIES_OPERATIONS } from "./operations/series.ts";
import { SERVER_OPERATIONS } from "./operations/servers.ts";
import { SESSION_OPERATIONS } from "./operations/sessions.ts";
import { SETTING_OPERATIONS } from "./operations/settings.ts";
import { USAGE_OPERATIONS } from "./operations/usage.ts";
import { WEBHOOK_OPERATIONS } from "./operations/webhook.ts";

/**
 * The table of operations of the admin API. The router, the validation, the OpenAPI document and the types of the
 * handlers and of the console derive from it. The documents show the operations in this order.
 */
export const ADMIN_OPERATIONS = {
  ...SESSION_OPERATIONS,
  ...OPERATOR_OPERATIONS,
  ...SERVER_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...OVERVIEW_OPERATIONS,
  ...SERIES_OPERATIONS,
  ...SETTING_OPERATIONS,
  ...KEY_OPERATIONS,
  ...POLICY_OPERATIONS,
  ...USAGE_OPERATIONS,
  ...REQUEST_OPERATIONS,
  ...AUDIT_OPERATIONS,
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

/** Whether only a running server can execute the operation. False for an operation that this release does not have. */
export function needsRunningServer(id: string): id is RunningServerOperationId {
  const operations: Readonly<Record<string, AdminOperation>> = ADMIN_OPERATIONS;
  return Object.hasOwn(operations, id) && operations[id]?.needsRunningServer === true;
}

export type { AdminErrorCode } from "./errors.ts";
export * from "./operations/rows.ts";
export { SESSION_HEADER } from "./operations/sessions.ts";
export { USAGE_LIMIT } from "./operations/usage.ts";
export type * from "./operations/audit.ts";
export type * from "./operations/keys.ts";
export type * from "./operations/operators.ts";
export type * from "./operations/overview.ts";
export type * from "./operations/pets-and-orders.ts";
export type * from "./operations/policy.ts";
export type * from "./operations/requests.ts";
export type * from "./operations/series.ts";
export type * from "./operations/servers.ts";
export type * from "./operations/sessions.ts";
export type * from "./operations/settings.ts";
export type * from "./operations/usage.ts";
export type * from "./operations/webhook.ts";
