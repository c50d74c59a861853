import type { Clock } from "./ports.ts";
import type { BanRules, Decision, Limits, OnBan, Quota } from "./rate-limit.ts";

/** A request of an API key. */
export interface LimitedRequest {
  readonly keyId: number;
  readonly limits: Limits;
}

/** The decision about a request, and the quota afterwards. Times are those of the steady clock. */
export interface Counted {
  readonly decision: Decision;
  readonly quota: Quota;
}

export interface KeyCounterOptions {
  readonly clock: Pick<Clock, "steadyNow">;
  /** Replaces the clock of the database. */
  readonly testClock?: Pick<Clock, "steadyNow"> | undefined;
  /** Returns the rules that apply now. */
  readonly ban: () => BanRules;
  /** Called for each new ban, after it was stored. */
  readonly onBan?: OnBan | undefined;
  /** Called after each batch of decisions. */
  readonly onResponse?: ((ms: number) => void) | undefined;
}

/** Counts the requests of API keys in the database, for all servers on it. Times are those of the steady clock. */
export interface KeyCounter {
  /** The number of requests that wait for a decision. */
  readonly queueLength: number;
  /** Rejects with Unavailable when the database is not available, or when too many requests wait. */
  decide(request: LimitedRequest): Promise<Counted>;
  /** Returns undefined if none of the quota is current. */
  quota(keyId: number): Promise<Quota | undefined>;
  /** Ends a ban that began at least `agoMs` ago, and clears strikes from before. */
  unban(keyId: number, agoMs: number): Promise<void>;
  close(): Promise<void>;
}
