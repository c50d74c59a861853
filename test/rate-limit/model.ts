import type { BanRules, Limits, Subject, Verdict } from "../../src/domain/rate-limit.ts";

/**
 * What a limiter should answer, found in the plainest way: whatever happened to a subject is kept as a list of
 * instants, and every question is answered by going through that list from the beginning.
 */
type Happening = { readonly at: number } & (
  | { readonly kind: "admitted" | "turned away" | "asked" }
  | { readonly kind: "refused"; readonly by: Span; readonly isStrike: boolean }
  | { readonly kind: "banned"; readonly by: Span }
  | { readonly kind: "pardoned"; readonly upTo: number }
);
type Span = "minute" | "day";
const LENGTH_MS = { minute: 60 * 1000, day: 24 * 60 * 60 * 1000 } as const;

/** A window at an instant: when it admitted requests and when it refused some. None admitted means none is open. */
interface Window {
  readonly span: Span;
  readonly limit: number;
  readonly admitted: readonly number[];
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

  admit(subject: Subject, limits: Limits, now: number): Verdict {
    const history = this.#historyOf(subject);
    const [minute, day] = windowsAt(history, limits, now);
    const bannedUntil = this.#banAt(history, now);
    if (bannedUntil !== undefined) {
      history.push({ at: now, kind: "turned away" });
      return bannedVerdict(tightest(minute, day), bannedUntil, now);
    }

    const spent = [minute, day].filter((window) => left(window) === 0);
    if (spent.length === 0) {
      history.push({ at: now, kind: "admitted" });
      const told = tightest(...windowsAt(history, limits, now));
      return {
        outcome: "admitted",
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
      return bannedVerdict(told, now + this.rules.lengthMs, now);
    }
    return {
      outcome: "limited",
      limit: told.limit,
      remaining: 0,
      resetAt: toSecond(end(told)),
      retryAfter: toSecond(end(last) - now),
    };
  }

  pardon(subject: Subject, upTo: number, now: number): void {
    this.#historyOf(subject).push({ at: now, kind: "pardoned", upTo });
  }

  look(subject: Subject, now: number): Look {
    const history = this.#historyOf(subject);
    const [minute, day] = windowsAt(history, { perMinute: 1, perDay: 1 }, now);
    return {
      used: [minute.admitted.length, day.admitted.length],
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
      if (happening.kind === "pardoned" && began !== undefined && began <= happening.upTo) began = undefined;
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
function replay(happenings: readonly Happening[], span: Span): Pick<Window, "admitted" | "refusals"> {
  let admitted: number[] = [];
  let refusals: { at: number; isStrike: boolean }[] = [];
  for (const happening of happenings) {
    admitted = admitted.map((at) => Math.min(at, happening.at));
    refusals = refusals.map(({ at, isStrike }) => ({ at: Math.min(at, happening.at), isStrike }));
    if (admitted[0] !== undefined && happening.at >= admitted[0] + LENGTH_MS[span]) {
      admitted = [];
      refusals = [];
    }
    if (happening.kind === "admitted") admitted.push(happening.at);
    if (happening.kind === "refused" && happening.by === span) refusals.push(happening);
    if (happening.kind === "banned")
      refusals = refusals.filter(({ isStrike }) => !isStrike || happening.by !== span);
    if (happening.kind === "pardoned" && (refusals[0]?.at ?? Infinity) <= happening.upTo) refusals = [];
  }
  return { admitted, refusals };
}

/** On a tie the longer one. */
function tightest(minute: Window, day: Window): Window {
  return left(minute) < left(day) ? minute : day;
}

function left({ limit, admitted }: Window): number {
  return Math.max(0, limit - admitted.length);
}

function strikesOf({ refusals }: Window): number {
  return refusals.filter(({ isStrike }) => isStrike).length;
}

function end({ span, admitted }: Window): number {
  return (admitted[0] ?? NaN) + LENGTH_MS[span];
}

function bannedVerdict({ limit }: Window, until: number, now: number): Verdict {
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
