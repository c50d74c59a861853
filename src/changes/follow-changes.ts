import type { Authenticator } from "../auth/authenticator.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import type { Policy } from "../domain/policy.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { ChangedKey } from "../domain/ports/keys.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { scheduler, type Scheduler } from "../runtime/scheduler.ts";
import type { ChangeReader, DatabaseReplacement } from "./change-reader.ts";
import { PolicyReads } from "./policy-reads.ts";
import { Polls } from "./polls.ts";
import { WaitingUnbans } from "./waiting-unbans.ts";

interface FollowOptions {
  readonly reader: Pick<ChangeReader, "read">;
  readonly authenticator: Pick<Authenticator, "keysChanged">;
  readonly rateLimiter: Pick<RateLimiter, "unban">;
  readonly clock: Clock;
  /** Reads the policy, after the start and when it may have changed. */
  readonly readPolicy: () => Awaitable<Policy>;
  applyPolicy(policy: Policy): void;
  /** Called at each poll, for what the store itself caches. */
  readonly followStore?: (() => void) | undefined;
  /** Called with the keys that others have created or changed, without those that were unbanned. */
  onChanges(changed: readonly ApiKey[]): void;
  /** Called when all keys are looked up again. */
  onReplacement?(replacement: DatabaseReplacement): void;
  /** Called when changes cannot be read, and when they can be read again. */
  readonly onUnreadable: (error: unknown) => void;
  readonly onReadable: () => void;
  /** Called when the rate limiter has applied the unban. */
  onUnban?(keyId: number): void;
  /** Called at the first attempt that fails. */
  onUnbanError(keyId: number, error: unknown): void;
  readonly scheduler?: Scheduler;
}

export interface ChangeFollower {
  /**
   * Returns undefined if everything that is cached is as it was at most a second before `now`, by the clock of the
   * scheduler. Otherwise the caller waits for the promise, and then uses what is cached.
   */
  whenCurrent(now: number): Promise<void> | undefined;
  /** Applies all changes up to now. A change of a key by this process takes effect here at once if it calls this. */
  applyNow(changedKeyId?: number): Promise<void>;
  /** Calls the listener after each poll that shows questions to servers. Returns a function that removes it. */
  onQuestions(listener: () => void): () => void;
  close(): void;
}

/**
 * Follows what other processes change in the database: keys (plans, secrets, revocations), unbans, the policy,
 * questions to servers, a copy of the database that takes over, and what the store itself caches. Polls can overlap,
 * and a result that is late undoes no later one.
 */
export function followChanges(options: FollowOptions): ChangeFollower {
  const { reader, authenticator } = options;
  const policy = new PolicyReads(options);
  const unbans = new WaitingUnbans(options);
  const questionListeners = new Set<() => void>();
  const polls = new Polls({ scheduler, ...options, read: readChanges });
  const polling = polls.repeat(() => void unbans.apply());

  async function readChanges(): Promise<void> {
    options.followStore?.();
    const { after, changed, hasChanged, hasQuestions, replacement } = await reader.read();
    if (hasQuestions) for (const listener of questionListeners) listener();
    if (hasChanged) policy.mayHaveChanged();
    if (replacement) options.onReplacement?.(replacement);
    const ofKind = (kind: ChangedKey["kind"]) =>
      changed.flatMap((each) => (each.kind === kind ? each.key : []));
    options.onChanges(ofKind("key"));
    for (const key of ofKind("unban")) unbans.add(key, after);
    if (!policy.isCurrent) await policy.read();
  }

  return {
    whenCurrent: (now) => polls.whenCurrent(now),
    async applyNow(changedKeyId) {
      if (changedKeyId !== undefined) authenticator.keysChanged([changedKeyId]);
      await polls.poll();
      await unbans.applyNow();
    },
    onQuestions(listener) {
      questionListeners.add(listener);
      return () => void questionListeners.delete(listener);
    },
    close: () => void polling.close(),
  };
}
