/**
 * The arithmetic of limits and bans. No clock, no I/O: every function takes `now`, in milliseconds since the epoch.
 *
 * A subject has two windows. Each opens with the first allowed request that finds none open and closes its length
 * later. A request is charged to both or to neither, so a refused one costs nothing and opens nothing.
 */
export const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

/** Who is counted: a key by its number, or a caller without one by address (IPv6: by /64). */
export type Subject = `key:${number}` | `address:${string}`;

/** Whole numbers from 1, since a limit of nothing would have no end to wait for, to a thousand million. */
export interface Limits {
  readonly perMinute: number;
  readonly perDay: number;
}

export interface BanRules {
  /** RejectionCache that earn a ban. */
  readonly strikes: number;
  /** RejectionCache this soon after the first are forgiven: those requests may have been under way already. */
  readonly graceMs: number;
  readonly lengthMs: number;
}

export const DEFAULT_BAN: BanRules = { strikes: 10, graceMs: 1_000, lengthMs: 300_000 };

export interface Window {
  /** Meaningless while `used` is 0: no window is open then. */
  openedAt: number;
  used: number;
  /** When a request was first refused because this window was exhausted, or NEVER. */
  refusedAt: number;
  strikes: number;
}

export interface Usage {
  readonly minute: Window;
  readonly day: Window;
  /** When the ban that stands began and ends, or NEVER. */
  bannedAt: number;
  bannedUntil: number;
}

export const NEVER = -1;

export type Outcome = "allowed" | "limited" | "banned";

/** The outcome, and what the headers say of it. */
export interface Decision {
  readonly outcome: Outcome;
  readonly limit: number;
  readonly remaining: number;
  /** Unix second, rounded up. */
  readonly resetAt: number;
  /** Whole seconds, at least 1, to the end of what refused this request; 0 when it was allowed. */
  readonly retryAfter: number;
}

export function newUsage(): Usage {
  return { minute: newWindow(), day: newWindow(), bannedAt: NEVER, bannedUntil: NEVER };
}

function newWindow(): Window {
  return { openedAt: 0, used: 0, refusedAt: NEVER, strikes: 0 };
}

/** Admits or refuses one request, and updates the usage accordingly. Without rules nothing is ever banned. */
export function decide(usage: Usage, limits: Limits, now: number, rules?: BanRules): Decision {
  settle(usage, now, rules);
  if (now < usage.bannedUntil) return bannedDecision(usage, limits, now);

  const { minute, day } = usage;
  const minuteSpent = isSpent(minute, limits.perMinute);
  const daySpent = isSpent(day, limits.perDay);
  if (!minuteSpent && !daySpent) {
    charge(minute, now);
    charge(day, now);
    return decision("allowed", usage, limits, 0);
  }

  const minuteEnds = minuteSpent ? minute.openedAt + MINUTE_MS : NEVER;
  const dayEnds = daySpent ? day.openedAt + DAY_MS : NEVER;
  // The refusal counts against the window that will go on refusing the longest.
  if (rules && strike(dayEnds >= minuteEnds ? day : minute, now, rules)) {
    usage.bannedAt = now;
    usage.bannedUntil = now + rules.lengthMs;
    return bannedDecision(usage, limits, now);
  }
  return decision("limited", usage, limits, secondsUntil(Math.max(dayEnds, minuteEnds), now));
}

/** Whether a window that was settled has nothing left. */
export function isSpent(window: Window, limit: number): boolean {
  return window.used >= limit;
}

/**
 * Closes what has ended, for good: it does not return if the clock does. A clock that went backwards never stretches
 * anything either: what seems to have begun in the future is taken to begin now, its counts kept.
 */
export function settle(usage: Usage, now: number, rules?: BanRules): void {
  settleWindow(usage.minute, MINUTE_MS, now);
  settleWindow(usage.day, DAY_MS, now);
  if (usage.bannedAt > now) {
    usage.bannedUntil -= usage.bannedAt - now;
    usage.bannedAt = now;
  }
  if (rules) usage.bannedUntil = Math.min(usage.bannedUntil, usage.bannedAt + rules.lengthMs);
  if (now >= usage.bannedUntil) liftBan(usage);
}

function settleWindow(window: Window, lengthMs: number, now: number): void {
  if (window.openedAt > now) window.openedAt = now;
  if (window.refusedAt > now) window.refusedAt = now;
  if (now < window.openedAt + lengthMs) return;
  window.used = 0;
  forgiveStrikes(window);
}

function liftBan(usage: Usage): void {
  usage.bannedAt = NEVER;
  usage.bannedUntil = NEVER;
}

function forgiveStrikes(window: Window): void {
  window.refusedAt = NEVER;
  window.strikes = 0;
}

function charge(window: Window, now: number): void {
  if (window.used === 0) window.openedAt = now;
  window.used++;
}

/** Counts a refusal; true when it is the one that earns the ban. The ban wipes the strikes that led to it. */
function strike(window: Window, now: number, rules: BanRules): boolean {
  if (window.refusedAt === NEVER) window.refusedAt = now;
  else if (now - window.refusedAt > rules.graceMs) window.strikes++;
  if (window.strikes < rules.strikes) return false;
  window.strikes = 0;
  return true;
}

/** Describes the window with the fewest requests left; on a tie, the longer one. */
function decision(outcome: Outcome, { minute, day }: Usage, limits: Limits, retryAfter: number): Decision {
  const { perMinute, perDay } = limits;
  const minuteLeft = left(minute, perMinute);
  const dayLeft = left(day, perDay);
  return minuteLeft < dayLeft
    ? { outcome, limit: perMinute, remaining: minuteLeft, resetAt: closing(minute, MINUTE_MS), retryAfter }
    : { outcome, limit: perDay, remaining: dayLeft, resetAt: closing(day, DAY_MS), retryAfter };
}

function bannedDecision({ minute, day, bannedUntil }: Usage, limits: Limits, now: number): Decision {
  const { perMinute, perDay } = limits;
  return {
    outcome: "banned",
    limit: left(minute, perMinute) < left(day, perDay) ? perMinute : perDay,
    remaining: 0,
    resetAt: Math.ceil(bannedUntil / 1000),
    retryAfter: secondsUntil(bannedUntil, now),
  };
}

function left(window: Window, limit: number): number {
  return Math.max(0, limit - window.used);
}

function closing(window: Window, lengthMs: number): number {
  return Math.ceil((window.openedAt + lengthMs) / 1000);
}

function secondsUntil(end: number, now: number): number {
  return Math.max(1, Math.ceil((end - now) / 1000));
}

/** Lifts a ban that began at or before `at`, and forgives strikes from before; what came later stands. */
export function unban(usage: Usage, at: number): void {
  if (usage.bannedAt <= at) liftBan(usage);
  if (usage.minute.refusedAt <= at) forgiveStrikes(usage.minute);
  if (usage.day.refusedAt <= at) forgiveStrikes(usage.day);
}

/** Whether forgetting this usage would change no answer. */
export function isForgettable({ minute, day, bannedUntil }: Usage, now: number): boolean {
  return hasClosed(minute, MINUTE_MS, now) && hasClosed(day, DAY_MS, now) && now >= bannedUntil;
}

function hasClosed(window: Window, lengthMs: number, now: number): boolean {
  return window.used === 0 || now >= window.openedAt + lengthMs;
}
