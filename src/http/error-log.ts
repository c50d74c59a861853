import { Unavailable } from "../contract/errors.ts";
import { RequestAborted } from "../http1/index.ts";
import type { Log } from "../log.ts";

const INTERVAL_MS = 1_000;

/**
 * Logs the errors of requests. Internal errors have a line each. A database that is unavailable fails every request
 * for the same reason, so those have one line a second with the number of requests since the last line.
 */
export class ErrorLog {
  #silentUntil = 0;
  #suppressed = 0;

  constructor(private readonly log: Log) {}

  report(where: string, error: unknown, requestId: string): void {
    if (error instanceof RequestAborted) return;
    if (!(error instanceof Unavailable)) {
      this.log.error("request failed", { where, requestId, error });
      return;
    }
    const now = performance.now();
    if (now < this.#silentUntil) {
      this.#suppressed++;
      return;
    }
    this.log.warn("unavailable", { where, requestId, error, suppressed: this.#suppressed });
    this.#silentUntil = now + INTERVAL_MS;
    this.#suppressed = 0;
  }
}
