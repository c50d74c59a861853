import {
  copyOf,
  type Decision,
  type Limits,
  merge,
  NEVER,
  newQuota,
  peek,
  type Quota,
  shiftDecision,
  unban,
} from "../domain/rate-limit.ts";
import type { KeyCounter } from "../domain/ports/rate-limiter.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { BoundedMap } from "../runtime/bounded-map.ts";

/** The quotas of 50,000 keys take 15 MB. */
export const MAX_KNOWN_KEYS = 50_000;

interface Known {
  readonly quota: Quota;
  /** The period in which the counter has replied to a request with this quota or a later one. */
  readonly reportedIn: number;
}

/** What this server hands over with a request to a counter. The reply is learned with it. */
export interface QuotaHandOver {
  readonly period: number;
  /** The state that the request hands over; undefined if the counter has it in this period. */
  readonly quota: Quota | undefined;
}

/**
 * The last state of each key that this server has seen. A period begins whenever another counter takes over. The first
 * request for a key in a period hands over its state. When there are too many keys, those without a reply for the
 * longest time are forgotten. Times are those of the steady clock.
 */
export class KnownQuotas {
  readonly #keys = new BoundedMap<number, Known>(MAX_KNOWN_KEYS);
  #period = 0;

  constructor(private readonly clock: Pick<Clock, "steadyNow" | "stepMs">) {}

  get size(): number {
    return this.#keys.size;
  }

  /** Must be called when another counter takes over. */
  beginPeriod(): void {
    this.#period++;
  }

  /** Lets the counter decide, with what it may not know of the key. The decision is by the machine's clock. */
  async decide(counter: KeyCounter, keyId: number, limits: Limits): Promise<Decision> {
    const handOver = this.handOverFor(keyId);
    const { decision, quota } = await counter.decide({ keyId, limits, known: handOver.quota });
    this.learn(keyId, quota, handOver, this.clock.steadyNow());
    return shiftDecision(decision, this.clock.stepMs);
  }

  handOverFor(keyId: number): QuotaHandOver {
    const known = this.#keys.get(keyId);
    return { period: this.#period, quota: known?.reportedIn === this.#period ? undefined : known?.quota };
  }

  /**
   * Learns a reply. One that came late is a part of what the counter that decides now has to learn, and so is what was
   * learned since the request was sent.
   */
  learn(keyId: number, quota: Quota, { period, quota: handedOver }: QuotaHandOver, now: number): void {
    const known = this.#keys.get(keyId);
    const isCurrent =
      period === this.#period && (known?.reportedIn === period || known?.quota === handedOver);
    if (!isCurrent && known) {
      const merged = copyOf(known.quota);
      merge(merged, copyOf(quota), now);
      this.#keys.set(keyId, { quota: merged, reportedIn: NEVER });
      return;
    }
    this.#keys.set(keyId, { quota, reportedIn: isCurrent ? period : NEVER });
  }

  quotaOf(keyId: number): Quota {
    return copyOf(this.#keys.get(keyId)?.quota ?? newQuota());
  }

  /** Returns the decision about a request now, by the machine's clock. */
  peek(keyId: number, limits: Limits): Decision {
    return shiftDecision(peek(this.quotaOf(keyId), limits, this.clock.steadyNow()), this.clock.stepMs);
  }

  /** Ends a ban that began at or before `at`. */
  unban(keyId: number, at: number): void {
    const known = this.#keys.get(keyId);
    if (known) unban(known.quota, at);
  }
}
