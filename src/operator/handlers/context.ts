import type { Attribution } from "../../domain/audit.ts";
import type { Request } from "../../http1/index.ts";
import type { Awaitable } from "../../runtime/awaitable.ts";
import type {
  ADMIN_OPERATIONS,
  AdminInput,
  AdminOperationId,
  AdminRejectionOf,
  ResponseOf,
} from "../operations.ts";
import type { Principal } from "../sign-in/credential-rules.ts";

/** Who calls an operation, and when. */
export interface AdminContext {
  /** The attribution of a change. For an operation that needs no token, it names the actor that a token would have. */
  readonly by: Attribution;
  /** The operator. It is undefined for an operation that needs no token, and for a command on the machine. */
  readonly principal?: Principal;
}

/** The context of an operation on sessions, whose handler needs the cookie of the request and its origin. */
export interface RequestContext extends AdminContext {
  readonly request: Request;
  /** The headers that a success adds to the response. */
  readonly responseHeaders: Record<string, string>;
}
type ContextOf<Id extends AdminOperationId> = (typeof ADMIN_OPERATIONS)[Id] extends { tag: "Session" }
  ? RequestContext
  : AdminContext;

/** The handlers of all operations. */
export type AdminHandlers = {
  readonly [Id in AdminOperationId]: (
    input: AdminInput<Id>,
    context: ContextOf<Id>,
  ) => Awaitable<ResponseOf<Id> | AdminRejectionOf<Id>>;
};
