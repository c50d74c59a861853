/* What the counters of keys have in common. */

import { BoundedMap } from "../runtime/bounded-map.ts";
import type { BanListeners, Counted, LimitedRequest } from "./ports/rate-limiter.ts";
import type { BanRules } from "./ban-rules.ts";
import { type Ban, charge, copyOf, decisionOf, merge, newQuota, type Quota } from "./rate-limit.ts";

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
  /** The ends of bans that were reported, by key. */
  readonly #ends = new BoundedMap<number, number>(MAX_REPORTED_BANS);

  constructor(private readonly listeners: BanListeners) {}

  report(keyId: number, { bannedAt, bannedUntil }: Ban, isNew: boolean): void {
    if (this.#ends.get(keyId) === bannedUntil) return;
    this.#ends.set(keyId, bannedUntil);
    const { onBan, onEarlierBan } = this.listeners;
    (isNew ? onBan : onEarlierBan)?.(keyId, { bannedAt, bannedUntil });
  }
}
