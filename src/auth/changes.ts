import { FailureReporter } from "../runtime/failure-reporter.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import type { Policy } from "../domain/policy.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { ChangedKey } from "../domain/ports/keys.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { repeat } from "../runtime/repeat.ts";
import { scheduler, type Scheduler } from "../runtime/scheduler.ts";
import type { Authenticator } from "./authenticator.ts";
import type { ChangeReader, DatabaseReplacement } from "./change-reader.ts";

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

interface Unban {
  readonly id: number;
  /** The unban ends bans that began before this time of the steady clock. */
  readonly before: number;
  /** Reports attempts to apply the unban that fail. */
  readonly attempts: FailureReporter;
}

export interface ChangeFollower {
  /**
   * Returns undefined if everything that is cached is as it was at most a second before `now`. Otherwise the caller
   * waits for the promise, and then uses what is cached.
   */
  whenCurrent(now: number): Promise<void> | undefined;
  /** Applies all changes up to now. A change of a key by this process takes effect here at once if it calls this. */
  applyNow(changedKeyId?: number): Promise<void>;
  /** Calls the listener after each poll that shows questions to servers. Returns a function that removes it. */
  onQuestions(listener: () => void): () => void;
  close(): void;
}

const POLL_EVERY_MS = 250;
/**
 * The polls that may run at once. One hung connection then delays a change by a quarter of a second. Each of them ends
 * within the timeout of a query.
 */
const MAX_POLLS = 8;
/** What is cached is used for this time after the start of a poll. A revocation takes effect within it. */
const CURRENT_FOR_MS = 1_000;
/** The longest time that requests wait for a poll. In an outage of the database, what is cached remains valid. */
const MAX_WAIT_MS = 1_000;
const RETRY_MS = 50;

/**
 * Follows what other processes change in the database: keys (plans, secrets, revocations), unbans, the policy,
 * questions to servers, a copy of the database that takes over, and what the store itself caches.
 *
 * All that is cached is used only within a second of the start of a poll. A process that was paused for longer, or
 * whose event loop was busy, polls before it handles the next request (`whenCurrent`). Polls may overlap, because one
 * may hang; a result that is late undoes no later one.
 *
 * An unban ends the bans that began before it. Each process applies it once: the revision in the key store shows that
 * it is new, so another change of the key does not repeat it. Two times are known to be before the unban, and it ends
 * the bans that began before the later of the two:
 *
 * - the start of the last poll that did not show it, by the clock of this process. So the unban works even if the clock
 *   of the operator's machine is behind.
 * - `unbannedAt`, by the operator's clock. If that clock is ahead, the unban may also end a ban that began between the
 *   unban and the poll that shows it, within a quarter of a second.
 */
export function followChanges(options: FollowOptions): ChangeFollower {
  const { reader, authenticator, rateLimiter, clock, scheduler: time = scheduler } = options;
  const unbans = new Map<number, Unban>();
  const questionListeners = new Set<() => void>();
  const reading = new FailureReporter(options.onUnreadable, options.onReadable);
  /** The changes after which the policy is to be read. Somebody may have changed it while the server started. */
  let policyChanges = 1;
  let policyChangesRead = 0;
  let policyReads = 0;
  let policyReadApplied = 0;
  let polls = 0;
  /** When the last successful poll began. */
  let readAt = -Infinity;
  let currentUntil = -Infinity;
  let failedAt = -Infinity;
  let catchingUp: Promise<void> | undefined;
  let applying: Promise<void> | undefined;

  const polling = repeat(
    POLL_EVERY_MS,
    async () => {
      if (polls >= MAX_POLLS) return POLL_EVERY_MS;
      const isDone = await settlesWithin(POLL_EVERY_MS, poll());
      void applyUnbans();
      return isDone ? POLL_EVERY_MS : 0;
    },
    time,
  );

  async function applyNow(changedKeyId?: number): Promise<void> {
    if (changedKeyId !== undefined) authenticator.keysChanged([changedKeyId]);
    await poll();
    await applying;
    await applyUnbans();
  }

  function whenCurrent(now: number): Promise<void> | undefined {
    if (now <= currentUntil) return undefined;
    return (catchingUp ??= catchUp().finally(() => (catchingUp = undefined)));
  }

  /** In an outage that this process has noticed, one attempt shows whether it is over. */
  async function catchUp(): Promise<void> {
    const isOutage = time.now() - failedAt < CURRENT_FOR_MS;
    const deadline = time.now() + MAX_WAIT_MS;
    for (;;) {
      const startedAt = time.now();
      await settlesWithin(POLL_EVERY_MS, poll());
      const now = time.now();
      if (now <= currentUntil) return;
      // This process was paused meanwhile.
      if (now - startedAt > CURRENT_FOR_MS) return catchUp();
      if (isOutage || now >= deadline) break;
      await time.sleep(RETRY_MS);
    }
    currentUntil = time.now() + CURRENT_FOR_MS;
  }

  async function poll(): Promise<void> {
    const startedAt = time.now();
    polls++;
    try {
      await readChanges();
      if (startedAt >= readAt) readAt = startedAt;
      currentUntil = Math.max(currentUntil, startedAt + CURRENT_FOR_MS);
      reading.succeeded();
    } catch (error) {
      // A later poll shows the present state.
      if (startedAt < readAt) return;
      reading.failed(error);
      failedAt = time.now();
    } finally {
      polls--;
    }
  }

  function settlesWithin(ms: number, work: Promise<void>): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = time.setTimeout(() => resolve(false), ms);
      timer.unref();
      void work.then(() => {
        timer.close();
        resolve(true);
      });
    });
  }

  async function readChanges(): Promise<void> {
    options.followStore?.();
    const { after, changed, hasChanged, hasQuestions, replacement } = await reader.read();
    if (hasQuestions) for (const listener of questionListeners) listener();
    if (hasChanged) policyChanges++;
    if (replacement) options.onReplacement?.(replacement);
    const ofKind = (kind: ChangedKey["kind"]) =>
      changed.flatMap((each) => (each.kind === kind ? each.key : []));
    options.onChanges(ofKind("key"));
    for (const { id, unbannedAt = 0 } of ofKind("unban")) {
      const unbannedAgoMs = Math.max(0, clock.now() - unbannedAt);
      const before = Math.max(after, clock.steadyNow() - unbannedAgoMs);
      unbans.set(id, {
        id,
        before,
        attempts: new FailureReporter((error) => options.onUnbanError(id, error)),
      });
    }
    if (policyChangesRead < policyChanges) await readPolicy();
  }

  async function readPolicy(): Promise<void> {
    const [changes, number] = [policyChanges, ++policyReads];
    const policy = await options.readPolicy();
    policyChangesRead = Math.max(policyChangesRead, changes);
    if (number < policyReadApplied) return;
    policyReadApplied = number;
    options.applyPolicy(policy);
  }

  function applyUnbans(): Promise<void> {
    return (applying ??= applyEach().finally(() => (applying = undefined)));
  }

  async function applyEach(): Promise<void> {
    for (const unban of unbans.values()) await apply(unban);
  }

  /** An unban that fails is tried again after the next poll, and the others are applied. */
  async function apply({ id, before, attempts }: Unban): Promise<void> {
    try {
      await rateLimiter.unban({ kind: "key", id }, clock.steadyNow() - before);
      unbans.delete(id);
      options.onUnban?.(id);
    } catch (error) {
      attempts.failed(error);
    }
  }

  return {
    applyNow,
    whenCurrent,
    onQuestions(listener) {
      questionListeners.add(listener);
      return () => void questionListeners.delete(listener);
    },
    close: () => void polling.close(),
  };
}
