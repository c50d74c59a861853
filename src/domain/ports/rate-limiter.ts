import type { Awaitable } from "../../runtime/awaitable.ts";
import type { BanRules } from "../ban-rules.ts";
import type { Decision, Limits, OnBan, Quota, Subject } from "../rate-limit.ts";
import type { Clock } from "./clock.ts";

/** Limits the requests of each subject, or of keys alone, by the rules in domain/rate-limit.ts. */
export interface RateLimiter<Limited extends Subject = Subject> {
  /** The number of requests that wait for a decision, if they are decided elsewhere. */
  readonly queueLength?: number;
  /**
   * Allows or rejects one request, atomically. A rate limiter in process decides without a promise. Throws Unavailable
   * when more requests wait for a decision than it can queue.
   */
  decide(subject: Limited, limits: Limits): Awaitable<Decision>;
  /**
   * Returns the decision about a request now, as far as this process knows, without counting the request: `remaining`
   * includes it. The quota of an address is always known.
   */
  peek(subject: Limited, limits: Limits): Decision;
  /** Returns the quota without counting a request; undefined if none of it is current. */
  quota(subject: Limited): Awaitable<Quota | undefined>;
  /** Returns the keys that are banned now; undefined if another process counts them. */
  bannedKeys(): readonly number[] | undefined;
  /** Ends a ban that began at least `agoMs` ago, and clears strikes from before. */
  unban(subject: Limited, agoMs: number): Awaitable<void>;
  close(): Promise<void>;
}

export interface KeyLimiterOptions {
  /** Called for each ban that this server has decided. Its entry is in the audit trail. */
  readonly onBan?: OnBan | undefined;
  /** The name of this server for the audit entries. */
  readonly server: string;
  readonly clock: Pick<Clock, "steadyNow" | "stepMs">;
  /** Replaces the clock of the database. */
  readonly testClock?: Pick<Clock, "steadyNow"> | undefined;
  /** Returns the rules that apply now. */
  readonly ban: () => BanRules;
  /** Called after each batch of decisions. */
  readonly onResponse?: ((ms: number) => void) | undefined;
}

/** Stores the quotas of an in-process rate limiter, so that they survive a restart. */
export interface QuotaStore {
  load(): Iterable<readonly [Subject, Quota]>;
  /** Whether a save would have to wait; absent if it never does. Each look may begin what it would wait for. */
  readonly isPaused?: boolean;
  /** Saves all of the changes or none; undefined deletes a subject. */
  save(changes: Iterable<readonly [Subject, Quota | undefined]>): void;
  find(subject: Subject): Quota | undefined;
  close(): void;
}
