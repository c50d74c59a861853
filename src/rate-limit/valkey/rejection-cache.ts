import type { Clock } from "../../domain/ports.ts";
import type { BanRules, Decision, Limits, Subject } from "../../domain/rate-limit.ts";
import type { DecisionRequest } from "./batcher.ts";
import { formatSubject } from "./scripts.ts";

interface Rejection {
  readonly limits: Limits;
  readonly decision: Decision;
  readonly until: number;
}

const MAX_REJECTIONS = 10_000;
/** `retryAfter` is in whole seconds, rounded up. */
const ROUNDING_MS = 1_000;

/** The server's last rejections: a key that it banned or limited stays so while the server is unavailable. */
export class RejectionCache {
  readonly #clock: Clock;
  readonly #ban: BanRules;
  /** In the order of the first rejection; the oldest is dropped when there are too many. */
  readonly #rejections = new Map<string, Rejection>();

  constructor(clock: Clock, ban: BanRules) {
    this.#clock = clock;
    this.#ban = ban;
  }

  add({ subject, limits }: DecisionRequest, decision: Decision): void {
    // `retryAfter` is a length of time, so the server's clock and ours need not agree.
    const until = this.#clock.steadyNow() + decision.retryAfter * 1000;
    this.#rejections.set(formatSubject(subject), { limits, decision, until });
    if (this.#rejections.size <= MAX_REJECTIONS) return;
    for (const oldest of this.#rejections.keys()) {
      this.#rejections.delete(oldest);
      return;
    }
  }

  /** The rejection that still holds, or undefined. */
  find({ subject, limits }: DecisionRequest): Decision | undefined {
    const name = formatSubject(subject);
    const rejection = this.#rejections.get(name);
    if (rejection === undefined) return undefined;
    const { decision, until } = rejection;
    const waitMs = until - this.#clock.steadyNow();
    if (waitMs <= 0 || (decision.outcome === "limited" && haveChanged(rejection.limits, limits))) {
      this.#rejections.delete(name);
      return undefined;
    }
    return { ...decision, retryAfter: Math.ceil(waitMs / 1000) };
  }

  /** Drops a ban that may have begun at least `agoMs` ago. */
  unban(subject: Subject, agoMs: number): void {
    const rejection = this.#rejections.get(formatSubject(subject));
    if (rejection?.decision.outcome !== "banned") return;
    const bannedAt = rejection.until - this.#ban.lengthMs - ROUNDING_MS;
    if (bannedAt <= this.#clock.steadyNow() - agoMs) this.#rejections.delete(formatSubject(subject));
  }
}

function haveChanged(before: Limits, now: Limits): boolean {
  return before.perMinute !== now.perMinute || before.perDay !== now.perDay;
}
