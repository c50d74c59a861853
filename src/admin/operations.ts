import type { Identifier } from "../contract/json.ts";
import type { Infer } from "../contract/schema.ts";
import type { AdminRejection } from "./contract/errors.ts";
import { KEY_OPERATIONS } from "./contract/key-operations.ts";
import { SERVER_OPERATIONS } from "./contract/server-operations.ts";
import { STORE_OPERATIONS } from "./contract/store-operations.ts";

/**
 * The table of operations of the admin API. The router, the validation, the OpenAPI document and the types of the
 * handlers and of the console derive from it.
 */
export const ADMIN_OPERATIONS = { ...SERVER_OPERATIONS, ...KEY_OPERATIONS, ...STORE_OPERATIONS } as const;

type Operations = typeof ADMIN_OPERATIONS;
export type AdminOperationId = keyof Operations;

/** The query of an operation, parsed. */
export type QueryOf<Id extends AdminOperationId> = Operations[Id] extends { query: infer Q }
  ? { readonly [K in keyof Q]?: Infer<Q[K]> }
  : undefined;
/** The body of a request. */
export type BodyOf<Id extends AdminOperationId> = Operations[Id] extends { body: infer B }
  ? Infer<B>
  : undefined;
/** The body of a success; undefined for 204. */
export type ResponseOf<Id extends AdminOperationId> = Operations[Id]["success"] extends { body: infer B }
  ? Infer<B>
  : undefined;
type IdentifierOf<Id extends AdminOperationId> = Operations[Id] extends { identifier: object }
  ? Identifier
  : undefined;

/** The validated input of a handler. */
export interface AdminInput<Id extends AdminOperationId> {
  readonly id: IdentifierOf<Id>;
  readonly query: QueryOf<Id>;
  readonly body: BodyOf<Id>;
}

export type AdminRejectionOf<Id extends AdminOperationId> = AdminRejection<Operations[Id]["errors"][number]>;

export type { AdminErrorCode } from "./contract/errors.ts";
export type * from "./contract/history-resources.ts";
export type * from "./contract/key-resources.ts";
export type * from "./contract/resources.ts";
