import type { Awaitable } from "../../runtime/awaitable.ts";
import type { Decision, Limits, Quota, Subject } from "../rate-limit.ts";

/** Limits the requests of each subject, by the rules in domain/rate-limit.ts. */
export interface RateLimiter {
  /**
   * Allows or rejects one request, atomically. A rate limiter in process decides without a promise. Throws Unavailable
   * when more requests wait for a decision than it can queue.
   */
  decide(subject: Subject, limits: Limits): Awaitable<Decision>;
  /**
   * Returns the decision about a request now, as far as this process knows, without counting the request: `remaining`
   * includes it. The quota of an address is always known.
   */
  peek(subject: Subject, limits: Limits): Decision;
  /** Returns the quota without counting a request; undefined if none of it is current. */
  quota(subject: Subject): Awaitable<Quota | undefined>;
  /** Returns the keys that are banned now; undefined if another process counts them. */
  bannedKeys(): readonly number[] | undefined;
  /** Ends a ban that began at least `agoMs` ago, and clears strikes from before. */
  unban(subject: Subject, agoMs: number): Awaitable<void>;
  close(): Promise<void>;
}

/** Stores the quotas of an in-process rate limiter, so that they survive a restart. */
export interface QuotaStore {
  load(): Iterable<readonly [Subject, Quota]>;
  /** Saves all of the changes or none; undefined deletes a subject. */
  save(changes: Iterable<readonly [Subject, Quota | undefined]>): void;
  find(subject: Subject): Quota | undefined;
  close(): void;
}
