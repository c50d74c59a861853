import { FailureReporter } from "../runtime/failure-reporter.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import type { ChangedKey, Clock, RateLimiter } from "../domain/ports.ts";
import { repeat, type Scheduler } from "../runtime/event-loop.ts";
import type { Authenticator, DatabaseReplacement } from "./authenticator.ts";

interface FollowOptions {
  readonly authenticator: Pick<Authenticator, "followChanges">;
  readonly rateLimiter: Pick<RateLimiter, "unban">;
  readonly clock: Clock;
  /** Reads the limits of the plans and the ban rules, after the start and when they may have changed. */
  readonly readPolicy: () => Promise<void>;
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

interface KeyChangeFollower {
  /** Applies all changes up to now. A change by this process takes effect here at once if it calls this. */
  applyNow(): Promise<void>;
  close(): void;
}

/** A server applies a change within a second, even if one poll is slow. */
const POLL_EVERY_MS = 250;

/**
 * Applies changes that other processes make in the key store: plans, secrets, revocations, unbans; and changes of the
 * limits of plans and of the ban rules, which have revisions too. Polls never overlap, because a slow result would undo
 * a later one.
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
export function followKeyChanges(options: FollowOptions): KeyChangeFollower {
  const { authenticator, rateLimiter, clock } = options;
  const unbans = new Map<number, Unban>();
  const reading = new FailureReporter(options.onUnreadable, options.onReadable);
  // Somebody may have changed it while the server started.
  let isPolicyRead = false;
  let lastPoll = Promise.resolve();
  const polling = repeat(POLL_EVERY_MS, () => applyNow().then(() => POLL_EVERY_MS), options.scheduler);

  function applyNow(): Promise<void> {
    lastPoll = lastPoll.then(poll);
    return lastPoll;
  }

  async function poll(): Promise<void> {
    try {
      await readChanges();
      reading.succeeded();
    } catch (error) {
      reading.failed(error);
    }
    for (const unban of unbans.values()) await apply(unban);
  }

  async function readChanges(): Promise<void> {
    const { after, changed, hasChanged, replacement } = await authenticator.followChanges();
    if (hasChanged) isPolicyRead = false;
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
    if (!isPolicyRead) await options.readPolicy();
    isPolicyRead = true;
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

  return { applyNow, close: () => void polling.close() };
}
