import type { Clock } from "../../domain/ports.ts";
import type { Decision, Limits, Subject } from "../../domain/rate-limit.ts";
import type { DecisionRequest } from "./batcher.ts";
import { formatSubject, type ScriptBan } from "./scripts.ts";

interface Rejection {
  readonly limits: Limits;
  readonly decision: Decision;
  readonly until: number;
  /** The earliest time at which the ban may have begun; undefined if it is none. */
  readonly bannedAt: number | undefined;
}

const MAX_REJECTIONS = 10_000;
/** More than a decision takes to arrive. */
const MAX_DELAY_MS = 1_000;

/** The server's last rejections: a key that it banned or limited stays so while the server is unavailable. */
export class RejectionCache {
  readonly #clock: Clock;
  /** In the order of the first rejection; the oldest is dropped when there are too many. */
  readonly #rejections = new Map<string, Rejection>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add({ subject, limits }: DecisionRequest, decision: Decision, ban?: Pick<ScriptBan, "agoMs">): void {
    // `retryAfter` and `agoMs` are lengths of time, so the server's clock and ours need not agree.
    const now = this.#clock.steadyNow();
    const until = now + decision.retryAfter * 1000;
    const bannedAt = ban && now - ban.agoMs - MAX_DELAY_MS;
    this.#rejections.set(formatSubject(subject), { limits, decision, until, bannedAt });
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
    const bannedAt = this.#rejections.get(formatSubject(subject))?.bannedAt;
    if (bannedAt === undefined || bannedAt > this.#clock.steadyNow() - agoMs) return;
    this.#rejections.delete(formatSubject(subject));
  }
}

function haveChanged(before: Limits, now: Limits): boolean {
  return before.perMinute !== now.perMinute || before.perDay !== now.perDay;
}
