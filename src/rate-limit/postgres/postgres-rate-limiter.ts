import type { KeyCounter } from "../../domain/key-counter.ts";
import type { RateLimiter } from "../../domain/ports/rate-limiter.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import {
  type Decision,
  type Limits,
  type Quota,
  shift,
  shiftDecision,
  type Subject,
} from "../../domain/rate-limit.ts";
import type { Awaitable } from "../../runtime/awaitable.ts";
import { KnownQuotas } from "../known-quotas.ts";

interface PostgresRateLimiterOptions {
  readonly clock: Clock;
  /** The rate limiter closes it. */
  readonly counter: KeyCounter;
  /** Decides for addresses. The rate limiter closes it. */
  readonly local: RateLimiter;
}

/**
 * Rate limits of keys that all servers on a database share. Each server counts addresses in its own process, because
 * anybody can send from many.
 */
export class PostgresRateLimiter implements RateLimiter {
  readonly #options: PostgresRateLimiterOptions;
  readonly #known = new KnownQuotas();

  constructor(options: PostgresRateLimiterOptions) {
    this.#options = options;
  }

  get queueLength(): number {
    return this.#options.counter.queueLength;
  }

  decide(subject: Subject, limits: Limits): Awaitable<Decision> {
    if (subject.kind === "address") return this.#options.local.decide(subject, limits);
    return this.#decide(subject.id, limits);
  }

  async #decide(keyId: number, limits: Limits): Promise<Decision> {
    const { counter, clock } = this.#options;
    const handOver = this.#known.handOverFor(keyId);
    const { decision, quota } = await counter.decide({ keyId, limits });
    this.#known.learn(keyId, quota, handOver, clock.steadyNow());
    return this.#onWallClock(decision);
  }

  peek(subject: Subject, limits: Limits): Decision {
    if (subject.kind === "address") return this.#options.local.peek(subject, limits);
    const { clock } = this.#options;
    return this.#onWallClock(this.#known.peek(subject.id, limits, clock.steadyNow()));
  }

  async quota(subject: Subject): Promise<Quota | undefined> {
    if (subject.kind === "address") return this.#options.local.quota(subject);
    const quota = await this.#options.counter.quota(subject.id);
    if (quota) shift(quota, this.#options.clock.stepMs);
    return quota;
  }

  bannedKeys(): undefined {
    return undefined;
  }

  async unban(subject: Subject, agoMs: number): Promise<void> {
    if (subject.kind === "address") return this.#options.local.unban(subject, agoMs);
    this.#known.unban(subject.id, this.#options.clock.steadyNow() - agoMs);
    await this.#options.counter.unban(subject.id, agoMs);
  }

  #onWallClock(decision: Decision): Decision {
    const { stepMs } = this.#options.clock;
    return stepMs === 0 ? decision : shiftDecision(decision, stepMs);
  }

  async close(): Promise<void> {
    await this.#options.counter.close();
    await this.#options.local.close();
  }
}
