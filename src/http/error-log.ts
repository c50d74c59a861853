import { Unavailable } from "../contract/errors.ts";
import type { Log } from "../log.ts";
import { RequestAborted } from "../http1/index.ts";

const QUIET_MS = 1_000;

/**
 * Writes faults down. Every bug is a line of its own with its cause. An engine that is away fails every request for
 * the same reason, so that is one line a second with a count.
 */
export class ErrorLog {
  #quietUntil = 0;
  #unmentioned = 0;

  constructor(private readonly log: Log) {}

  report(where: string, error: unknown): void {
    if (error instanceof RequestAborted) return;
    if (!(error instanceof Unavailable)) {
      this.log.error("request failed", { where, error });
      return;
    }
    const now = performance.now();
    if (now < this.#quietUntil) {
      this.#unmentioned++;
      return;
    }
    this.log.warn("unavailable", { where, error, unmentionedBefore: this.#unmentioned });
    this.#quietUntil = now + QUIET_MS;
    this.#unmentioned = 0;
  }
}
