import type { Actor } from "../domain/audit.ts";
import type { Awaitable } from "../domain/awaitable.ts";
import type { Request } from "../http1/index.ts";
import type { AdminRejection } from "./contract/errors.ts";
import type { AdminInput, AdminOperationId, AdminRejectionOf, ResponseOf } from "./operations.ts";
import type { AnyInput } from "./validation.ts";

/** Who sends a request, and the request itself for what concerns the session. */
export interface AdminContext {
  /** Of an operation that needs no token, what it would be with one. */
  readonly actor: Actor;
  readonly request: Request;
}

/** A success that sets headers. */
export class WithHeaders<T> {
  constructor(
    readonly body: T,
    readonly headers: Readonly<Record<string, string>>,
  ) {}
}

type Result<Id extends AdminOperationId> =
  ResponseOf<Id> | WithHeaders<ResponseOf<Id>> | AdminRejectionOf<Id>;

export type AdminHandler<Id extends AdminOperationId> = (
  input: AdminInput<Id>,
  context: AdminContext,
) => Awaitable<Result<Id>>;

/** Every operation has a handler. */
export type AdminHandlers = { readonly [Id in AdminOperationId]: AdminHandler<Id> };

/** The handlers of some operations. */
export type HandlersOf<Id extends AdminOperationId> = Pick<AdminHandlers, Id>;

/** The handler of any operation, for an input that was validated for that operation. */
export type AnyHandler = (input: AnyInput, context: AdminContext) => Awaitable<unknown>;

export function isAdminRejection(value: unknown): value is AdminRejection {
  return typeof value === "object" && value !== null && "code" in value;
}
