import type { Clock } from "./ports/clock.ts";
import {
  type Ban,
  type BanRules,
  charge,
  copyOf,
  type Decision,
  decisionOf,
  type Limits,
  merge,
  newQuota,
  type OnBan,
  type Quota,
} from "./rate-limit.ts";

/** A request of an API key. */
export interface LimitedRequest {
  readonly keyId: number;
  readonly limits: Limits;
  /** What this server knows of the key and the counter may not know. */
  readonly known?: Quota | undefined;
}

/** The decision about a request, and the quota afterwards. Times are those of the steady clock. */
export interface Counted {
  readonly decision: Decision;
  readonly quota: Quota;
}

/** Whom a counter that servers share reports bans to. */
export interface BanListeners {
  /** Called for each ban that this server has decided. */
  readonly onBan?: OnBan | undefined;
  /**
   * Called for each other ban that this server sees. Its own is one of them if the response of the counter was lost.
   */
  readonly onEarlierBan?: OnBan | undefined;
}

export interface KeyCounterOptions extends BanListeners {
  readonly clock: Pick<Clock, "steadyNow">;
  /** Replaces the clock of the database. */
  readonly testClock?: Pick<Clock, "steadyNow"> | undefined;
  /** Returns the rules that apply now. */
  readonly ban: () => BanRules;
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

/** The decisions in the order of the requests, and the keys that they have banned. */
interface CountedBatch {
  readonly counted: readonly Counted[];
  readonly banned: ReadonlyMap<number, Quota>;
}

/** Decides one request after the other, and changes the quotas of their keys. */
export function countAll(
  requests: readonly LimitedRequest[],
  quotas: ReadonlyMap<number, Quota>,
  now: number,
  rules: BanRules,
): CountedBatch {
  const banned = new Map<number, Quota>();
  const counted = requests.map(({ keyId, limits, known }) => {
    const quota = quotas.get(keyId) ?? newQuota();
    if (known) merge(quota, copyOf(known), now, rules);
    const outcome = charge(quota, limits, now, rules);
    if (outcome === "new ban") banned.set(keyId, quota);
    return { decision: decisionOf(outcome, quota, limits, now), quota };
  });
  return { counted, banned };
}

const MAX_REPORTED_BANS = 10_000;

/** Reports each ban once, although the counter shows it with each request. Times are those of the counter. */
export class BanReporter {
  /** The ends of bans that were reported, by key; the oldest is dropped when there are too many. */
  readonly #ends = new Map<number, number>();

  constructor(private readonly listeners: BanListeners) {}

  report(keyId: number, { bannedAt, bannedUntil }: Ban, isNew: boolean): void {
    if (this.#ends.get(keyId) === bannedUntil) return;
    this.#ends.delete(keyId);
    this.#ends.set(keyId, bannedUntil);
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > MAX_REPORTED_BANS && oldest !== undefined) this.#ends.delete(oldest);
    const { onBan, onEarlierBan } = this.listeners;
    (isNew ? onBan : onEarlierBan)?.(keyId, { bannedAt, bannedUntil });
  }
}
