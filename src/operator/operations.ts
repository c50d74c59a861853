import { Api, type InputOf, type RejectionOf, type ResponseOf as BodyOfSuccess } from "../api/api.ts";
import { ADMIN_ERRORS } from "./contract/errors.ts";
import { KEY_OPERATIONS } from "./contract/key-operations.ts";
import { ADMIN_BASE_PATH } from "./contract/operation.ts";
import { SERVER_OPERATIONS } from "./contract/server-operations.ts";
import { STORE_OPERATIONS } from "./contract/store-operations.ts";

/**
 * The table of operations of the admin API. The router, the validation, the OpenAPI document and the types of the
 * handlers and of the console derive from it.
 */
export const ADMIN_OPERATIONS = { ...SERVER_OPERATIONS, ...KEY_OPERATIONS, ...STORE_OPERATIONS } as const;

/** The API of operators. */
export const ADMIN_API = new Api({
  basePath: ADMIN_BASE_PATH,
  errors: ADMIN_ERRORS,
  operations: ADMIN_OPERATIONS,
});

type Table = typeof ADMIN_OPERATIONS;
export type AdminOperationId = keyof Table;

/** The validated input of a handler. */
export type AdminInput<Id extends AdminOperationId> = InputOf<Table[Id]>;
/** The query of an operation, parsed. */
export type QueryOf<Id extends AdminOperationId> = AdminInput<Id>["query"];
/** The body of a request. */
export type BodyOf<Id extends AdminOperationId> = AdminInput<Id>["body"];
/** The body of a success; undefined for 204. */
export type ResponseOf<Id extends AdminOperationId> = BodyOfSuccess<Table[Id]>;
export type AdminRejectionOf<Id extends AdminOperationId> = RejectionOf<Table[Id]>;

export type { AdminErrorCode } from "./contract/errors.ts";
export type * from "./contract/history-resources.ts";
export type * from "./contract/key-resources.ts";
export type * from "./contract/resources.ts";
