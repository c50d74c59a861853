import type { KeyCounter, KeyLimiter } from "../../domain/ports/rate-limiter.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { type Decision, type KeySubject, type Limits, type Quota, shift } from "../../domain/rate-limit.ts";
import { KnownQuotas } from "../known-quotas.ts";

/** Limits keys together with all servers on a database, where the counter counts. */
export class PostgresKeyLimiter implements KeyLimiter {
  readonly #known: KnownQuotas;

  /** Closing the rate limiter closes the counter. */
  constructor(
    private readonly counter: KeyCounter,
    private readonly clock: Clock,
  ) {
    this.#known = new KnownQuotas(clock);
  }

  get queueLength(): number {
    return this.counter.queueLength;
  }

  decide({ id }: KeySubject, limits: Limits): Promise<Decision> {
    return this.#known.decide(this.counter, id, limits);
  }

  peek({ id }: KeySubject, limits: Limits): Decision {
    return this.#known.peek(id, limits);
  }

  async quota({ id }: KeySubject): Promise<Quota | undefined> {
    const quota = await this.counter.quota(id);
    if (quota) shift(quota, this.clock.stepMs);
    return quota;
  }

  async unban({ id }: KeySubject, agoMs: number): Promise<void> {
    this.#known.unban(id, this.clock.steadyNow() - agoMs);
    await this.counter.unban(id, agoMs);
  }

  close(): Promise<void> {
    return this.counter.close();
  }
}
