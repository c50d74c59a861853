import { Overloaded, Unavailable } from "../api/errors.ts";
import { type ProtocolErrorStatus, RequestAborted } from "../http1/index.ts";
import type { Log } from "./log.ts";
import { EventBudget } from "./event-budget.ts";

/**
 * One event for each 5xx, with the id of the request. A database that is unavailable fails every request, so there is a
 * bound: the event after it has the number of those that are missing.
 */
export class ErrorLog {
  readonly #failed = new EventBudget();
  readonly #unavailable = new EventBudget();
  readonly #overloaded = new EventBudget();
  readonly #unsupported = new EventBudget();

  constructor(private readonly log: Log) {}

  report(where: string, error: unknown, requestId: string): void {
    const { log } = this;
    if (error instanceof RequestAborted) return;
    if (error instanceof Overloaded) {
      this.#overloaded.spend((suppressed) =>
        log.event("server.overloaded", { requestId, where, reason: reasonOf(error), suppressed }),
      );
    } else if (error instanceof Unavailable) {
      this.#unavailable.spend((suppressed) =>
        log.event("request.unavailable", { requestId, where, reason: reasonOf(error), suppressed }),
      );
    } else {
      this.#failed.spend((suppressed) =>
        log.event("request.failed", { requestId, where, error, suppressed }),
      );
    }
  }

  /** 501 and 505: what the client sent is at fault. */
  reportUnsupported(status: ProtocolErrorStatus, requestId: string): void {
    if (status < 500) return;
    this.#unsupported.spend((suppressed) =>
      this.log.event("request.unsupported", { requestId, status, suppressed }),
    );
  }
}

const MAX_CAUSES = 4;

/** The messages of the error and its causes. The stacks are all the same while a database is unavailable. */
function reasonOf(error: Error): string {
  const messages: string[] = [];
  let current: unknown = error;
  while (current !== undefined && messages.length < MAX_CAUSES) {
    const message = current instanceof Error ? current.message : String(current);
    if (!messages.some((earlier) => earlier.includes(message))) messages.push(message);
    current = current instanceof Error ? current.cause : undefined;
  }
  return messages.join(": ");
}
