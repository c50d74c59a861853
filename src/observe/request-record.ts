import type { ApiKeyPrincipal, AuthFailure } from "../domain/api-keys.ts";
import type { OperationId } from "../domain/usage-history.ts";
import type { Decision } from "../domain/rate-limit.ts";
import type { Request, Response } from "../http1/index.ts";

/** What is known of one request, for metrics, usage history and the access log. */
export class RequestRecord {
  /** The API key, or why there is none; undefined for a page, which needs no key. */
  principal: ApiKeyPrincipal | AuthFailure | undefined;
  /** Undefined if the rate limiter failed, and for /healthz, which is not counted. */
  decision: Decision | undefined;
  /** Undefined for a page, an unknown path, and a request that was rejected before it was routed. */
  operation: OperationId | undefined;

  /** `startedAt` is a time of `performance.now`, in milliseconds. */
  constructor(
    readonly request: Request,
    readonly requestId: string,
    readonly startedAt: number,
  ) {}
}

/**
 * Is called once for each request, when its response is ready. If the client disconnected before the body had arrived,
 * the status is 499 and nothing is sent. It must not throw, and keeps no record.
 */
export type RequestObserver = (record: RequestRecord, response: Response) => void;
