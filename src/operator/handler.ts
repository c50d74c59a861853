import type { Actor } from "../domain/audit.ts";
import type { Awaitable } from "../api/awaitable.ts";
import type { Request } from "../http1/index.ts";
import type { AdminInput, AdminOperationId, AdminRejectionOf, ResponseOf } from "./operations.ts";
import type { AnyInput } from "../api/dispatch.ts";

/** Who calls an operation. */
export interface AdminContext {
  /** Of an operation that needs no token, what it would be with one. */
  readonly actor: Actor;
}

/** An operation on the session needs the request: its cookie is the session. */
export interface SessionContext extends AdminContext {
  readonly request: Request;
}
type ContextOf<Id> = Id extends `${string}Session` ? SessionContext : AdminContext;

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
  context: ContextOf<Id>,
) => Awaitable<Result<Id>>;

/** Every operation has a handler. */
export type AdminHandlers = { readonly [Id in AdminOperationId]: AdminHandler<Id> };

/** The handlers of some operations. */
export type HandlersOf<Id extends AdminOperationId> = Pick<AdminHandlers, Id>;

/** The handler of any operation, for an input that was validated for that operation. */
export type AnyHandler = (input: AnyInput, context: AdminContext) => Awaitable<unknown>;
