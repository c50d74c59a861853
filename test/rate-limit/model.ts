import type { BanRules, Decision, Limits, Subject } from "../../src/domain/rate-limit.ts";
import { textOf } from "../subjects.ts";

/**
 * What a rate limiter should decide, computed in the plainest way: the model stores every event of a subject in a list,
 * and replays that list from the beginning for each decision.
 */
type Event = { readonly at: number } & (
  | { readonly kind: "allowed" | "rejected without strike" | "now" }
  | { readonly kind: "rejected"; readonly by: WindowName; readonly isStrike: boolean }
  | { readonly kind: "banned"; readonly by: WindowName }
  | { readonly kind: "unbanned"; readonly upTo: number }
);
type WindowName = "minute" | "day";
const LENGTH_MS = { minute: 60 * 1000, day: 24 * 60 * 60 * 1000 } as const;

/** The requests that a window allowed and rejected. It is closed when it allowed none. */
interface Window {
  readonly name: WindowName;
  readonly limit: number;
  readonly allowed: readonly number[];
  readonly rejections: readonly { readonly at: number; readonly isStrike: boolean }[];
}

/** The minute comes first. */
export interface VisibleUsage {
  readonly used: readonly [number, number];
  readonly strikes: readonly [number, number];
  readonly bannedUntil: number | undefined;
}

export class ModelRateLimiter {
  readonly #histories = new Map<string, Event[]>();

  constructor(private readonly rules: BanRules) {}

  decide(subject: Subject, limits: Limits, now: number): Decision {
    const history = this.#historyOf(subject);
    const [minute, day] = windowsAt(history, limits, now);
    const bannedUntil = this.#banAt(history, now);
    if (bannedUntil !== undefined) {
      history.push({ at: now, kind: "rejected without strike" });
      return bannedDecision(shownWindow(minute, day), bannedUntil, now);
    }

    const exhausted = [minute, day].filter((window) => remainingIn(window) === 0);
    if (exhausted.length === 0) {
      history.push({ at: now, kind: "allowed" });
      const shown = shownWindow(...windowsAt(history, limits, now));
      return {
        outcome: "allowed",
        limit: shown.limit,
        remaining: remainingIn(shown),
        resetAt: toSecond(endOf(shown)),
        retryAfter: 0,
      };
    }

    const last = exhausted.reduce((one, other) => (endOf(other) >= endOf(one) ? other : one));
    const shown = shownWindow(minute, day);
    if (subject.kind !== "key") history.push({ at: now, kind: "rejected without strike" });
    else if (this.#isBannedBy(history, last, now)) {
      return bannedDecision(shown, now + this.rules.lengthMs, now);
    }
    return {
      outcome: "limited",
      limit: shown.limit,
      remaining: 0,
      resetAt: toSecond(endOf(shown)),
      retryAfter: toSecond(endOf(last) - now),
    };
  }

  unban(subject: Subject, upTo: number, now: number): void {
    this.#historyOf(subject).push({ at: now, kind: "unbanned", upTo });
  }

  usage(subject: Subject, now: number): VisibleUsage {
    const history = this.#historyOf(subject);
    const [minute, day] = windowsAt(history, { perMinute: 1, perDay: 1 }, now);
    return {
      used: [minute.allowed.length, day.allowed.length],
      strikes: [strikesOf(minute), strikesOf(day)],
      bannedUntil: this.#banAt(history, now),
    };
  }

  #historyOf(subject: Subject): Event[] {
    const found = this.#histories.get(textOf(subject));
    if (found !== undefined) return found;
    const history: Event[] = [];
    this.#histories.set(textOf(subject), history);
    return history;
  }

  /** Stores that the window rejected a request, and returns whether the key is banned for it. */
  #isBannedBy(history: Event[], { name, rejections }: Window, now: number): boolean {
    const [first] = rejections;
    const isStrike = first !== undefined && now - first.at > this.rules.graceMs;
    history.push({ at: now, kind: "rejected", by: name, isStrike });
    const strikes = rejections.filter((rejection) => rejection.isStrike).length + Number(isStrike);
    if (strikes < this.rules.strikes) return false;
    history.push({ at: now, kind: "banned", by: name });
    return true;
  }

  /** When the current ban ends. */
  #banAt(history: readonly Event[], now: number): number | undefined {
    let began: number | undefined;
    for (const event of upTo(now, history)) {
      if (began !== undefined) began = Math.min(began, event.at);
      if (began !== undefined && event.at >= began + this.rules.lengthMs) began = undefined;
      if (event.kind === "banned") began = event.at;
      if (event.kind === "unbanned" && began !== undefined && began <= event.upTo) began = undefined;
    }
    return began === undefined ? undefined : began + this.rules.lengthMs;
  }
}

function upTo(now: number, history: readonly Event[]): Event[] {
  return [...history, { at: now, kind: "now" }];
}

function windowsAt(history: readonly Event[], { perMinute, perDay }: Limits, now: number): [Window, Window] {
  return [
    { name: "minute", limit: perMinute, ...replay(upTo(now, history), "minute") },
    { name: "day", limit: perDay, ...replay(upTo(now, history), "day") },
  ];
}

/** After the clock was set back, what happened in the future counts as if it happened now. */
function replay(events: readonly Event[], name: WindowName): Pick<Window, "allowed" | "rejections"> {
  let allowed: number[] = [];
  let rejections: { at: number; isStrike: boolean }[] = [];
  for (const event of events) {
    allowed = allowed.map((at) => Math.min(at, event.at));
    rejections = rejections.map(({ at, isStrike }) => ({ at: Math.min(at, event.at), isStrike }));
    if (allowed[0] !== undefined && event.at >= allowed[0] + LENGTH_MS[name]) {
      allowed = [];
      rejections = [];
    }
    if (event.kind === "allowed") allowed.push(event.at);
    if (event.kind === "rejected" && event.by === name) rejections.push(event);
    if (event.kind === "banned")
      rejections = rejections.filter(({ isStrike }) => !isStrike || event.by !== name);
    if (event.kind === "unbanned" && (rejections[0]?.at ?? Infinity) <= event.upTo) rejections = [];
  }
  return { allowed, rejections };
}

/** On a tie the longer one. */
function shownWindow(minute: Window, day: Window): Window {
  return remainingIn(minute) < remainingIn(day) ? minute : day;
}

function remainingIn({ limit, allowed }: Window): number {
  return Math.max(0, limit - allowed.length);
}

function strikesOf({ rejections }: Window): number {
  return rejections.filter(({ isStrike }) => isStrike).length;
}

function endOf({ name, allowed }: Window): number {
  return (allowed[0] ?? NaN) + LENGTH_MS[name];
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
