import { Overloaded, Unavailable } from "../api/errors.ts";
import { type ProtocolErrorStatus, type Request, RequestAborted } from "../http1/index.ts";
import { BoundedMap } from "../runtime/bounded-map.ts";
import { messageOf } from "../runtime/message-of.ts";
import { TokenBucket } from "../runtime/token-bucket.ts";
import type { Log } from "./log.ts";
import { traceContextOf } from "./trace.ts";

/** The limit for the events of each kind. */
const EVENTS = { max: 100, perSecond: 10 };
/** The limit for 503 responses of one reason. A full disk or an outage may last for hours. */
const OUTAGE_EVENTS = { max: 100, perSecond: 1 / 60 };
const MAX_REASONS = 100;

/**
 * Logs an event for each 5xx response, with the identifiers of the request and of its trace. While a database is
 * unavailable, every request fails, so the number of events is limited. The next event after the limit has the number
 * of those that were suppressed.
 */
export class ErrorLog {
  readonly #failed = new TokenBucket(EVENTS);
  readonly #unavailable = new TokenBucket(EVENTS);
  readonly #reasons = new BoundedMap<string, TokenBucket>(MAX_REASONS);
  /** The number of events that the limits of their reasons have suppressed since the last one. */
  #repeated = 0;
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
      const details = { requestId, traceId, where, reason: messagesWithCauses(error) };
      if (error instanceof Overloaded)
        this.#overloaded.reportOrCount((suppressed) =>
          log.event("server.overloaded", { ...details, suppressed }),
        );
      else if (!this.#limitOf(details.reason).take()) this.#repeated++;
      else
        this.#unavailable.reportOrCount((others) => {
          log.event("request.unavailable", { ...details, suppressed: others + this.#repeated });
          this.#repeated = 0;
        });
    } else {
      this.#failed.reportOrCount((suppressed) =>
        log.event("request.failed", { requestId, traceId, where, error, suppressed }),
      );
    }
  }

  #limitOf(reason: string): TokenBucket {
    const limit = this.#reasons.get(reason) ?? new TokenBucket(OUTAGE_EVENTS);
    this.#reasons.set(reason, limit);
    return limit;
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
