import type { ApiKey } from "../domain/api-keys.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";

interface WaitingUnbansOptions {
  readonly rateLimiter: Pick<RateLimiter, "unban">;
  readonly clock: Clock;
  /** Called when the rate limiter has applied the unban. */
  onUnban?(keyId: number): void;
  /** Called at the first attempt that fails. */
  onUnbanError(keyId: number, error: unknown): void;
}

interface Unban {
  readonly id: number;
  /** The unban ends bans that began before this time of the steady clock. */
  readonly before: number;
  /** Reports attempts to apply the unban that fail. */
  readonly attempts: FailureReporter;
}

/**
 * The unbans that the rate limiter has not applied yet. An unban ends the bans that began before it. Each process
 * applies it once: the revision in the key store shows that it is new, so another change of the key does not repeat it.
 * Two times are known to be before the unban, and it ends the bans that began before the later of the two:
 *
 * - the start of the last poll that did not show it, by the clock of this process. So the unban works even if the clock
 *   of the operator's machine is behind.
 * - `unbannedAt`, by the operator's clock. If that clock is ahead, the unban may also end a ban that began between the
 *   unban and the poll that shows it, within a quarter of a second.
 */
export class WaitingUnbans {
  readonly #options: WaitingUnbansOptions;
  readonly #unbans = new Map<number, Unban>();
  #applying: Promise<void> | undefined;

  constructor(options: WaitingUnbansOptions) {
    this.#options = options;
  }

  /** `after` is when the last poll began that did not show the unban, by the steady clock. */
  add({ id, unbannedAt = 0 }: Pick<ApiKey, "id" | "unbannedAt">, after: number): void {
    const { clock } = this.#options;
    const unbannedAgoMs = Math.max(0, clock.now() - unbannedAt);
    this.#unbans.set(id, {
      id,
      before: Math.max(after, clock.steadyNow() - unbannedAgoMs),
      attempts: new FailureReporter((error) => this.#options.onUnbanError(id, error)),
    });
  }

  /** Tries each once; attempts that are in progress are not repeated. */
  apply(): Promise<void> {
    return (this.#applying ??= this.#applyEach().finally(() => (this.#applying = undefined)));
  }

  /** Tries each once after the attempts in progress, so that one that was added meanwhile is not left out. */
  async applyNow(): Promise<void> {
    await this.#applying;
    await this.apply();
  }

  async #applyEach(): Promise<void> {
    for (const unban of this.#unbans.values()) await this.#apply(unban);
  }

  /** An unban that fails is tried again after the next poll, and the others are applied. */
  async #apply(unban: Unban): Promise<void> {
    const { id, before, attempts } = unban;
    const { rateLimiter, clock } = this.#options;
    try {
      await rateLimiter.unban({ kind: "key", id }, clock.steadyNow() - before);
      // A later unban of the key that was added meanwhile still waits.
      if (this.#unbans.get(id) === unban) this.#unbans.delete(id);
      this.#options.onUnban?.(id);
    } catch (error) {
      attempts.failed(error);
    }
  }
}
