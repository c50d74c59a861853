import type { BanRules, Limits, Subject, Decision } from "../../domain/rate-limit.ts";
import type { Clock } from "../../domain/ports.ts";
import type { Asked } from "./batcher.ts";

interface Rejection {
  readonly limits: Limits;
  readonly decision: Decision;
  readonly until: number;
}

const MAX_REFUSALS = 10_000;
/** A wait is known in whole seconds, rounded up. */
const ROUNDING_MS = 1_000;

/** The last refusals that the server gave, so that a key it has banned or limited gains nothing by its absence. */
export class RejectionCache {
  readonly #clock: Clock;
  readonly #ban: BanRules;
  /** In the order in which they were first refused; the oldest goes when there are too many. */
  readonly #known = new Map<Subject, Rejection>();

  constructor(clock: Clock, ban: BanRules) {
    this.#clock = clock;
    this.#ban = ban;
  }

  note({ subject, limits }: Asked, decision: Decision): void {
    // The wait is a length of time, so it does not matter whether the server's clock agrees with ours.
    const until = this.#clock.now() + decision.retryAfter * 1000;
    this.#known.set(subject, { limits, decision, until });
    if (this.#known.size <= MAX_REFUSALS) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }

  /** The refusal that still stands, or undefined. */
  find({ subject, limits }: Asked): Decision | undefined {
    const refusal = this.#known.get(subject);
    if (refusal === undefined) return undefined;
    const waitMs = refusal.until - this.#clock.now();
    if (waitMs <= 0 || (refusal.decision.outcome === "limited" && isOtherPlan(refusal.limits, limits))) {
      this.#known.delete(subject);
      return undefined;
    }
    return { ...refusal.decision, retryAfter: Math.ceil(waitMs / 1000) };
  }

  /** Forgets a ban that may have begun at or before `at`. */
  unban(subject: Subject, at: number): void {
    const refusal = this.#known.get(subject);
    if (refusal?.decision.outcome !== "banned") return;
    if (refusal.until - this.#ban.lengthMs - ROUNDING_MS <= at) this.#known.delete(subject);
  }
}

function isOtherPlan(one: Limits, other: Limits): boolean {
  return one.perMinute !== other.perMinute || one.perDay !== other.perDay;
}
