import type { Operation } from "../api/api.ts";
import type { ValidInput } from "../api/dispatch.ts";
import type { HeaderValues } from "../api/responses.ts";
import type { Rejection } from "../api/errors.ts";
import type { ApiKeyPrincipal } from "../domain/api-keys.ts";
import type { IdempotentRequest } from "../domain/ports/pets-and-orders.ts";
import type { Decision } from "../domain/rate-limit.ts";
import type { Request } from "../http1/index.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import type { Deprecation } from "./deprecation.ts";
import type { CurrentRevision, ReusableResponses } from "./response-cache.ts";

/** A row of a table of operations for clients. */
export interface PublicOperation<Code extends string = string> extends Operation<Code> {
  readonly acceptsIdempotencyKey?: true;
  readonly acceptsIfMatch?: true;
  readonly success: Required<Operation["success"]> & { readonly headers: readonly SuccessHeader[] };
  readonly deprecated?: Deprecation;
}

/** The headers of a success that depend on the operation. The rate limit headers are on every response. */
type SuccessHeader = "ETag" | "Link" | "Location" | "Deprecation" | "Sunset" | "Idempotent-Replayed";

/** What a handler knows of the request. */
interface HandlerCall {
  readonly principal: ApiKeyPrincipal;
  readonly decision: Decision;
  readonly request: Pick<Request, "headers">;
}

export type HandlerContext = [call: HandlerCall, idempotentRequest: IdempotentRequest | undefined];

/** A success of any operation. */
export interface AnySuccess {
  readonly body: string;
  readonly headers?: HeaderValues;
  /** The ETag, if the store has it. */
  readonly etag?: string;
  readonly revision?: CurrentRevision | undefined;
}

/** An operation and the code that serves it. */
export interface Endpoint {
  readonly id: string;
  readonly operation: PublicOperation;
  readonly handler: (input: ValidInput, ...context: HandlerContext) => Awaitable<AnySuccess | Rejection>;
  readonly reusable: ReusableResponses | undefined;
  /** The header lines of every response of a deprecated operation. The argument is the identifier in the path. */
  readonly deprecationLines: ((identifier: string) => string) | undefined;
  readonly removal: { readonly at: number; readonly rejection: Rejection } | undefined;
}
