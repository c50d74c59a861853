import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { Decision, KeySubject, Limits, Quota, Subject } from "../domain/rate-limit.ts";
import type { Awaitable } from "../runtime/awaitable.ts";

/**
 * Limits keys together with other servers, and addresses in this process alone: anybody can send from many addresses,
 * and could fill what servers share.
 */
export class KeyAndAddressLimiter implements RateLimiter {
  /** Closing the rate limiter closes both. */
  constructor(
    private readonly keys: RateLimiter<KeySubject>,
    private readonly addresses: RateLimiter,
  ) {}

  get queueLength(): number {
    return this.keys.queueLength ?? 0;
  }

  decide(subject: Subject, limits: Limits): Awaitable<Decision> {
    return subject.kind === "key"
      ? this.keys.decide(subject, limits)
      : this.addresses.decide(subject, limits);
  }

  peek(subject: Subject, limits: Limits): Decision {
    return subject.kind === "key" ? this.keys.peek(subject, limits) : this.addresses.peek(subject, limits);
  }

  quota(subject: Subject): Awaitable<Quota | undefined> {
    return subject.kind === "key" ? this.keys.quota(subject) : this.addresses.quota(subject);
  }

  bannedKeys(): readonly number[] | undefined {
    return this.keys.bannedKeys();
  }

  unban(subject: Subject, agoMs: number): Awaitable<void> {
    return subject.kind === "key" ? this.keys.unban(subject, agoMs) : this.addresses.unban(subject, agoMs);
  }

  async close(): Promise<void> {
    await this.keys.close();
    await this.addresses.close();
  }
}
