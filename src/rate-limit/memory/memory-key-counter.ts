import { countAll } from "../../domain/key-counting.ts";
import type {
  Counted,
  KeyCounter,
  KeyCounterOptions,
  LimitedRequest,
} from "../../domain/ports/rate-limiter.ts";
import { copyOf, expire, isExpired, newQuota, type Quota, unban } from "../../domain/rate-limit.ts";
import { BoundedMap } from "../../runtime/bounded-map.ts";
import { MAX_KNOWN_KEYS } from "../known-quotas.ts";

/** Counts the requests of keys in the process of the only server, one on SQLite, while Valkey is unavailable. */
export class MemoryKeyCounter implements KeyCounter {
  readonly queueLength = 0;
  readonly #options: KeyCounterOptions;
  /** The quotas by key. When there are too many, those without a request for the longest time are forgotten. */
  readonly #quotas = new BoundedMap<number, Quota>(MAX_KNOWN_KEYS);

  constructor(options: KeyCounterOptions) {
    this.#options = options;
  }

  async decide(request: LimitedRequest): Promise<Counted> {
    const { clock, ban, onBan } = this.#options;
    const { keyId } = request;
    const quota = this.#quotas.get(keyId) ?? newQuota();
    this.#quotas.set(keyId, quota);
    const { counted, banned } = countAll([request], new Map([[keyId, quota]]), clock.steadyNow(), ban());
    for (const [id, { bannedAt, bannedUntil }] of banned) onBan?.(id, { bannedAt, bannedUntil });
    const [{ decision }] = counted as readonly [Counted];
    return { decision, quota: copyOf(quota) };
  }

  async quota(keyId: number): Promise<Quota | undefined> {
    const quota = copyOf(this.#quotas.get(keyId) ?? newQuota());
    const now = this.#options.clock.steadyNow();
    expire(quota, now, this.#options.ban());
    return isExpired(quota, now) ? undefined : quota;
  }

  async unban(keyId: number, agoMs: number): Promise<void> {
    const quota = this.#quotas.get(keyId);
    if (quota) unban(quota, this.#options.clock.steadyNow() - agoMs);
  }

  async close(): Promise<void> {}
}
