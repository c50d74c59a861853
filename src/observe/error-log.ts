import { Overloaded, Unavailable } from "../api/errors.ts";
import { type ProtocolErrorStatus, type Request, RequestAborted } from "../http1/index.ts";
import { messageOf } from "../runtime/message-of.ts";
import { TokenBucket } from "../runtime/token-bucket.ts";
import type { Log } from "./log.ts";
import { traceContextOf } from "./trace.ts";

/** The limit for the events of each kind. */
const EVENTS = { max: 100, perSecond: 10 };
/** A full disk or an outage lasts for hours, and an event of its own says when it begins and ends. */
const OUTAGE_EVENTS = { max: 100, perSecond: 1 / 60 };

/**
 * Logs an event for each 5xx response, with the identifiers of the request and of its trace. While a database is
 * unavailable, every request fails, so the number of events is limited. The next event after the limit has the number
 * of those that were suppressed.
 */
export class ErrorLog {
  readonly #failed = new TokenBucket(EVENTS);
  readonly #unavailable = new TokenBucket(OUTAGE_EVENTS);
  readonly #overloaded = new TokenBucket(EVENTS);
  readonly #unsupported = new TokenBucket(EVENTS);

  constructor(private readonly log: Log) {}

  report(
    where: string,
    error: unknown,
    { requestId, request }: { requestId: string; request?: Request },
  ): void {
    const { log } = this;
    if (error instanceof RequestAborted) return;
    const traceId = request && traceContextOf(request)?.traceId;
    if (error instanceof Unavailable) {
      const isOverloaded = error instanceof Overloaded;
      (isOverloaded ? this.#overloaded : this.#unavailable).reportOrCount((suppressed) => {
        const details = { requestId, traceId, where, reason: messagesWithCauses(error), suppressed };
        log.event(isOverloaded ? "server.overloaded" : "request.unavailable", details);
      });
    } else {
      this.#failed.reportOrCount((suppressed) =>
        log.event("request.failed", { requestId, traceId, where, error, suppressed }),
      );
    }
  }

  /** Logs 501 and 505 responses, which the client has caused. */
  reportUnsupported(status: ProtocolErrorStatus, requestId: string): void {
    if (status < 500) return;
    this.#unsupported.reportOrCount((suppressed) =>
      this.log.event("request.unsupported", { requestId, status, suppressed }),
    );
  }
}

const MAX_CAUSES = 4;

/**
 * The messages of the error and its causes. Stacks are omitted: while a database is unavailable, they are all the same.
 */
function messagesWithCauses(error: Error): string {
  const messages: string[] = [];
  let current: unknown = error;
  while (current !== undefined && messages.length < MAX_CAUSES) {
    const message = messageOf(current);
    if (!messages.some((earlier) => earlier.includes(message))) messages.push(message);
    current = current instanceof Error ? current.cause : undefined;
  }
  return messages.join(": ");
}
