import { type ApiKeyPrincipal, type AuthFailure, isPrincipal } from "../domain/api-keys.ts";
import { HEALTH_PATH } from "../domain/paths.ts";
import type { Decision } from "../domain/rate-limit.ts";
import type { Request, Response } from "../http1/index.ts";
import type { Trace } from "./trace.ts";

/** The facts about one request, for metrics, usage history and the access log. */
export class RequestRecord {
  /** The principal, or why the request has none; undefined for a page, which needs no key. */
  authentication: ApiKeyPrincipal | AuthFailure | undefined;
  /** The decision of the rate limiter; undefined if it failed, and for /healthz, which is not counted. */
  decision: Decision | undefined;
  /** The operation; undefined for a page, an unknown path, and a request that was rejected before it was routed. */
  operation: string | undefined;
  /** The time from the head of the request to the response. */
  durationMs = 0;
  /** The spans; undefined if the request is not traced. */
  trace: Trace | undefined;

  constructor(
    readonly request: Request,
    readonly requestId: string,
  ) {}

  get keyId(): number | null {
    const { authentication } = this;
    return isPrincipal(authentication) ? authentication.keyId : null;
  }

  /** Whether a rate limit bounds the number of such requests. Health checks and preflights have none. */
  isCounted({ status }: Response): boolean {
    return this.decision !== undefined || (status >= 500 && this.request.path !== HEALTH_PATH);
  }
}

/**
 * Called once for each request, when its response is ready. If the client disconnected before the body had arrived, the
 * status is 499 and nothing is sent. An observer must not throw, and must not keep the record.
 */
export type RequestObserver = (record: RequestRecord, response: Response) => void;
