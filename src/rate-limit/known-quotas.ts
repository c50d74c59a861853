import { type Decision, type Limits, newQuota, peek, type Quota, unban } from "../domain/rate-limit.ts";

/** 50,000 keys take 15 MB. */
const MAX_KEYS = 50_000;

/**
 * The last state of each key that this server has seen. When there are too many keys, the oldest are forgotten. Times
 * are those of the steady clock.
 */
export class KnownQuotas {
  /** By key, the oldest first. */
  readonly #quotas = new Map<number, Quota>();

  get size(): number {
    return this.#quotas.size;
  }

  learn(keyId: number, quota: Quota): void {
    this.#quotas.set(keyId, quota);
    const [oldest] = this.#quotas.keys();
    if (this.#quotas.size > MAX_KEYS && oldest !== undefined) this.#quotas.delete(oldest);
  }

  peek(keyId: number, limits: Limits, now: number): Decision {
    return peek(structuredClone(this.#quotas.get(keyId) ?? newQuota()), limits, now);
  }

  /** Ends a ban that began at or before `at`. */
  unban(keyId: number, at: number): void {
    const quota = this.#quotas.get(keyId);
    if (quota) unban(quota, at);
  }
}
