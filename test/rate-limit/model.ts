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
  readonly lastBan: LastBan | undefined;
}

interface LastBan {
  readonly endedAt: number;
  readonly lengthMs: number;
}

interface Bans {
  readonly current?: { readonly began: number; readonly lengthMs: number } | undefined;
  readonly last?: LastBan | undefined;
}

export class ModelRateLimiter {
  readonly #histories = new Map<string, Event[]>();

  constructor(private readonly rules: BanRules) {}

  decide(subject: Subject, limits: Limits, now: number): Decision {
    const history = this.#historyOf(subject);
    const [minute, day] = windowsAt(history, limits, now);
    const bannedUntil = this.#bannedUntil(history, now);
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
      return bannedDecision(shown, this.#bannedUntil(history, now) ?? NaN, now);
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
      bannedUntil: this.#bannedUntil(history, now),
      lastBan: this.#bansAt(history, now).last,
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

  #bannedUntil(history: readonly Event[], now: number): number | undefined {
    const { current } = this.#bansAt(history, now);
    return current && current.began + current.lengthMs;
  }

  #bansAt(history: readonly Event[], now: number): Bans {
    return upTo(now, history).reduce<Bans>(
      (bans, event) => this.#after(withTimePassed(bans, event.at), event),
      {},
    );
  }

  #after({ current, last }: Bans, event: Event): Bans {
    if (event.kind === "banned") {
      const doubled = Math.min(2 * (last?.lengthMs ?? 0), this.rules.maxLengthMs);
      return { current: { began: event.at, lengthMs: Math.max(this.rules.lengthMs, doubled) } };
    }
    if (event.kind !== "unbanned") return { current, last };
    return {
      current: current && current.began <= event.upTo ? undefined : current,
      last: last && last.endedAt - last.lengthMs <= event.upTo ? undefined : last,
    };
  }
}

/** After the clock was set back, what happened in the future counts as if it happened now. */
function withTimePassed({ current, last }: Bans, at: number): Bans {
  if (current) {
    const { began, lengthMs } = { ...current, began: Math.min(current.began, at) };
    if (at < began + lengthMs) return { current: { began, lengthMs } };
    return withTimePassed({ last: { endedAt: began + lengthMs, lengthMs } }, at);
  }
  if (last === undefined || at >= last.endedAt + LENGTH_MS.day) return {};
  return { last: { ...last, endedAt: Math.min(last.endedAt, at) } };
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
