import type { BanRules, Limits, Subject, Decision } from "../../src/domain/rate-limit.ts";

/**
 * What a rateLimiter should answer, found in the plainest way: whatever happened to a subject is kept as a list of
 * instants, and every question is answered by going through that list from the beginning.
 */
type Happening = { readonly at: number } & (
  | { readonly kind: "allowed" | "turned away" | "asked" }
  | { readonly kind: "refused"; readonly by: IdRange; readonly isStrike: boolean }
  | { readonly kind: "banned"; readonly by: IdRange }
  | { readonly kind: "unbanned"; readonly upTo: number }
);
type IdRange = "minute" | "day";
const LENGTH_MS = { minute: 60 * 1000, day: 24 * 60 * 60 * 1000 } as const;

/** A window at an instant: when it allowed requests and when it refused some. None allowed means none is open. */
interface Window {
  readonly span: IdRange;
  readonly limit: number;
  readonly allowed: readonly number[];
  readonly refusals: readonly { readonly at: number; readonly isStrike: boolean }[];
}

/** What can be seen of a subject without charging it; the minute first. */
export interface Look {
  readonly used: readonly [number, number];
  readonly strikes: readonly [number, number];
  readonly bannedUntil: number | undefined;
}

export class ModelLimiter {
  readonly #histories = new Map<Subject, Happening[]>();

  constructor(private readonly rules: BanRules) {}

  decide(subject: Subject, limits: Limits, now: number): Decision {
    const history = this.#historyOf(subject);
    const [minute, day] = windowsAt(history, limits, now);
    const bannedUntil = this.#banAt(history, now);
    if (bannedUntil !== undefined) {
      history.push({ at: now, kind: "turned away" });
      return bannedDecision(tightest(minute, day), bannedUntil, now);
    }

    const spent = [minute, day].filter((window) => left(window) === 0);
    if (spent.length === 0) {
      history.push({ at: now, kind: "allowed" });
      const told = tightest(...windowsAt(history, limits, now));
      return {
        outcome: "allowed",
        limit: told.limit,
        remaining: left(told),
        resetAt: toSecond(end(told)),
        retryAfter: 0,
      };
    }

    const last = spent.reduce((one, other) => (end(other) >= end(one) ? other : one));
    const told = tightest(minute, day);
    if (!subject.startsWith("key:")) history.push({ at: now, kind: "turned away" });
    else if (this.#isBannedBy(history, last, now)) {
      return bannedDecision(told, now + this.rules.lengthMs, now);
    }
    return {
      outcome: "limited",
      limit: told.limit,
      remaining: 0,
      resetAt: toSecond(end(told)),
      retryAfter: toSecond(end(last) - now),
    };
  }

  unban(subject: Subject, upTo: number, now: number): void {
    this.#historyOf(subject).push({ at: now, kind: "unbanned", upTo });
  }

  look(subject: Subject, now: number): Look {
    const history = this.#historyOf(subject);
    const [minute, day] = windowsAt(history, { perMinute: 1, perDay: 1 }, now);
    return {
      used: [minute.allowed.length, day.allowed.length],
      strikes: [strikesOf(minute), strikesOf(day)],
      bannedUntil: this.#banAt(history, now),
    };
  }

  #historyOf(subject: Subject): Happening[] {
    const known = this.#histories.get(subject);
    if (known !== undefined) return known;
    const history: Happening[] = [];
    this.#histories.set(subject, history);
    return history;
  }

  /** Writes down that the window refused a request; whether that is the strike too many. */
  #isBannedBy(history: Happening[], { span, refusals }: Window, now: number): boolean {
    const [first] = refusals;
    const isStrike = first !== undefined && now - first.at > this.rules.graceMs;
    history.push({ at: now, kind: "refused", by: span, isStrike });
    const strikes = refusals.filter((refusal) => refusal.isStrike).length + Number(isStrike);
    if (strikes < this.rules.strikes) return false;
    history.push({ at: now, kind: "banned", by: span });
    return true;
  }

  /** When the ban that stands now will end. */
  #banAt(history: readonly Happening[], now: number): number | undefined {
    let began: number | undefined;
    for (const happening of upTo(now, history)) {
      if (began !== undefined) began = Math.min(began, happening.at);
      if (began !== undefined && happening.at >= began + this.rules.lengthMs) began = undefined;
      if (happening.kind === "banned") began = happening.at;
      if (happening.kind === "unbanned" && began !== undefined && began <= happening.upTo) began = undefined;
    }
    return began === undefined ? undefined : began + this.rules.lengthMs;
  }
}

function upTo(now: number, history: readonly Happening[]): Happening[] {
  return [...history, { at: now, kind: "asked" }];
}

function windowsAt(
  history: readonly Happening[],
  { perMinute, perDay }: Limits,
  now: number,
): [Window, Window] {
  return [
    { span: "minute", limit: perMinute, ...replay(upTo(now, history), "minute") },
    { span: "day", limit: perDay, ...replay(upTo(now, history), "day") },
  ];
}

/** When the clock is seen to have gone back, all that seems to lie ahead is taken to have happened just then. */
function replay(happenings: readonly Happening[], span: IdRange): Pick<Window, "allowed" | "refusals"> {
  let allowed: number[] = [];
  let refusals: { at: number; isStrike: boolean }[] = [];
  for (const happening of happenings) {
    allowed = allowed.map((at) => Math.min(at, happening.at));
    refusals = refusals.map(({ at, isStrike }) => ({ at: Math.min(at, happening.at), isStrike }));
    if (allowed[0] !== undefined && happening.at >= allowed[0] + LENGTH_MS[span]) {
      allowed = [];
      refusals = [];
    }
    if (happening.kind === "allowed") allowed.push(happening.at);
    if (happening.kind === "refused" && happening.by === span) refusals.push(happening);
    if (happening.kind === "banned")
      refusals = refusals.filter(({ isStrike }) => !isStrike || happening.by !== span);
    if (happening.kind === "unbanned" && (refusals[0]?.at ?? Infinity) <= happening.upTo) refusals = [];
  }
  return { allowed, refusals };
}

/** On a tie the longer one. */
function tightest(minute: Window, day: Window): Window {
  return left(minute) < left(day) ? minute : day;
}

function left({ limit, allowed }: Window): number {
  return Math.max(0, limit - allowed.length);
}

function strikesOf({ refusals }: Window): number {
  return refusals.filter(({ isStrike }) => isStrike).length;
}

function end({ span, allowed }: Window): number {
  return (allowed[0] ?? NaN) + LENGTH_MS[span];
}

function bannedDecision({ limit }: Window, until: number, now: number): Decision {
  return {
    outcome: "banned",
    limit,
    remaining: 0,
    resetAt: toSecond(until),
    retryAfter: toSecond(until - now),
  };
}

function toSecond(ms: number): number {
  return Math.ceil(ms / 1000);
}
