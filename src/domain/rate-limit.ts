/*
 * The arithmetic of rate limits and bans. No clock, no I/O: functions take `now`, in milliseconds since the epoch.
 *
 * A subject has two windows. Each opens with the first allowed request that finds it closed, and closes its length
 * later. A request counts in both windows or in neither: a rejected request costs no quota and opens no window.
 */

import { DAY_MS, MINUTE_MS } from "../text/time-units.ts";
import type { BanRules } from "./ban-rules.ts";

/** A key that has used this much of a window is shown as one that is close to its limit. */
export const CLOSE_TO_LIMIT_PERCENT = 80;

export function usedPercent(used: number, limit: number): number {
  return (used / limit) * 100;
}

export function isCloseToLimit(used: number, limit: number): boolean {
  return usedPercent(used, limit) >= CLOSE_TO_LIMIT_PERCENT;
}

/** Who is counted: an API key, or the address (IPv6: the /64) of a client without a valid key. */
export type Subject =
  { readonly kind: "key"; readonly id: number } | { readonly kind: "address"; readonly id: string };

/** An API key, the only subject that servers share. */
export type KeySubject = Extract<Subject, { kind: "key" }>;

/** Writes a subject as it is stored, such as `key:7`. */
export function formatSubject({ kind, id }: Subject): string {
  return `${kind}:${id}`;
}

/** Requests allowed in each window, from 1 to 1,000,000,000. */
export interface Limits {
  readonly perMinute: number;
  readonly perDay: number;
}

export interface Ban {
  readonly bannedAt: number;
  readonly bannedUntil: number;
}

/** Called once for each new ban, by the server that decided it. */
export type OnBan = (keyId: number, ban: Ban) => void;

export interface Window {
  /** Has no meaning while `used` is 0, because then the window is closed. */
  openedAt: number;
  used: number;
  /** When the grace period began, with the first request rejected because of this window or with a strike, or NEVER. */
  graceBeganAt: number;
  strikes: number;
}

/** What a subject has used of its limits, and its ban. */
export interface Quota {
  readonly minute: Window;
  readonly day: Window;
  /** When the current ban began, or NEVER. */
  bannedAt: number;
  /** When the current ban ends, or when the last one ended, or NEVER. */
  bannedUntil: number;
  /** The length of the last ban, which is kept for 24 hours or until the next one begins; 0 if there is none. */
  lastBanMs: number;
}

export const NEVER = -1;

type Outcome = "allowed" | "limited" | "banned";

/** What the headers of a response show of a window. */
interface RateLimitHeaders {
  readonly limit: number;
  readonly remaining: number;
  /** The Unix second at which the window closes, rounded up. Has no meaning if the window is closed. */
  readonly resetAt: number;
}

/** A window after a decision. */
export interface WindowState extends RateLimitHeaders {
  readonly strikes: number;
}

/** The outcome, the values of its response headers, and both windows. */
export interface Decision extends RateLimitHeaders {
  readonly outcome: Outcome;
  readonly minute: WindowState;
  readonly day: WindowState;
  /** Whole seconds, at least 1, until a request can be allowed again; 0 for an allowed request. */
  readonly retryAfterSeconds: number;
}

export function newQuota(): Quota {
  return { minute: newWindow(), day: newWindow(), bannedAt: NEVER, bannedUntil: NEVER, lastBanMs: 0 };
}

function newWindow(): Window {
  return { openedAt: 0, used: 0, graceBeganAt: NEVER, strikes: 0 };
}

/** Allows or rejects one request, and updates the quota. Without ban rules the subject is never banned. */
export function decide(quota: Quota, limits: Limits, now: number, rules?: BanRules): Decision {
  return decisionOf(charge(quota, limits, now, rules), quota, limits, now);
}

/** `decide` that returns the outcome alone: the request that leads to a ban is known from those during the ban. */
export function charge(quota: Quota, limits: Limits, now: number, rules?: BanRules): Outcome | "new ban" {
  expire(quota, now, rules);
  if (isBanned(quota, now)) return "banned";

  const { minute, day } = quota;
  const minuteEnds = exhaustedUntil(minute, MINUTE_MS, limits.perMinute);
  const dayEnds = exhaustedUntil(day, DAY_MS, limits.perDay);
  if (minuteEnds === NEVER && dayEnds === NEVER) {
    count(minute, now);
    count(day, now);
    return "allowed";
  }

  // The strike counts in the exhausted window that closes last.
  if (!rules || countRejection(dayEnds >= minuteEnds ? day : minute, now, rules) === "limit")
    return "limited";
  quota.bannedUntil = now + nextBanMs(quota, rules);
  quota.bannedAt = now;
  quota.lastBanMs = 0;
  return "new ban";
}

/** Returns what `decide` would, without counting the request: `remaining` includes it. */
export function peek(quota: Quota, limits: Limits, now: number, rules?: BanRules): Decision {
  expire(quota, now, rules);
  if (isBanned(quota, now)) return decisionOf("banned", quota, limits, now);
  const { minute, day } = quota;
  if (minute.used === 0) minute.openedAt = now;
  if (day.used === 0) day.openedAt = now;
  const isLimited = isExhausted(minute, limits.perMinute) || isExhausted(day, limits.perDay);
  return decisionOf(isLimited ? "limited" : "allowed", quota, limits, now);
}

/**
 * Returns the decision with this outcome, after `quota` has counted it. The decision describes the window with the
 * fewest requests remaining; on a tie, the longer one. That of a banned key says when a request is allowed again: a ban
 * may end before an exhausted window closes.
 */
export function decisionOf(
  outcome: Outcome | "new ban",
  quota: Quota,
  limits: Limits,
  now: number,
): Decision {
  const minute = stateOf(quota.minute, MINUTE_MS, limits.perMinute);
  const day = stateOf(quota.day, DAY_MS, limits.perDay);
  const { limit, remaining, resetAt } = fewerRemaining(minute, day);
  if (outcome === "allowed") return { outcome, limit, remaining, resetAt, retryAfterSeconds: 0, minute, day };
  const isLimited = outcome === "limited";
  const allowedAt = Math.max(
    isLimited ? NEVER : quota.bannedUntil,
    exhaustedUntil(quota.minute, MINUTE_MS, limits.perMinute),
    exhaustedUntil(quota.day, DAY_MS, limits.perDay),
  );
  const retryAfterSeconds = Math.max(1, Math.ceil((allowedAt - now) / 1000));
  if (isLimited) return { outcome, limit, remaining, resetAt, retryAfterSeconds, minute, day };
  const allowedSecond = Math.ceil(allowedAt / 1000);
  return { outcome: "banned", limit, remaining: 0, resetAt: allowedSecond, retryAfterSeconds, minute, day };
}

function stateOf(window: Window, lengthMs: number, limit: number): WindowState {
  const resetAt = Math.ceil((window.openedAt + lengthMs) / 1000);
  return { limit, remaining: Math.max(0, limit - window.used), resetAt, strikes: window.strikes };
}

function fewerRemaining(minute: WindowState, day: WindowState): WindowState {
  return minute.remaining < day.remaining ? minute : day;
}

/** Returns the exhausted window of a limited request that closes last: the one that the client has to wait for. */
export function exhaustedWindow({ minute, day }: Decision): "minute" | "day" {
  if (day.remaining > 0) return "minute";
  return minute.remaining > 0 || day.resetAt >= minute.resetAt ? "day" : "minute";
}

/** Moves the times of a decision, which has whole seconds, by as much as a clock was set. */
export function shiftDecision(decision: Decision, byMs: number): Decision {
  if (byMs === 0) return decision;
  const bySeconds = Math.ceil(byMs / 1000);
  const moved = <S extends RateLimitHeaders>(state: S): S => ({
    ...state,
    resetAt: state.resetAt + bySeconds,
  });
  return { ...moved(decision), minute: moved(decision.minute), day: moved(decision.day) };
}

function exhaustedUntil(window: Window, lengthMs: number, limit: number): number {
  return isExhausted(window, limit) ? window.openedAt + lengthMs : NEVER;
}

/** Whether a window, after `expire`, has no requests remaining. */
function isExhausted(window: Window, limit: number): boolean {
  return window.used >= limit;
}

/**
 * Closes windows and ends the ban when their time is over, for good: setting the clock back does not open them again.
 * After the clock was set back, windows and bans that began in the future begin now, so that they do not last longer.
 */
export function expire(quota: Quota, now: number, rules?: BanRules): void {
  expireWindow(quota.minute, MINUTE_MS, now);
  expireWindow(quota.day, DAY_MS, now);
  if (quota.bannedUntil !== NEVER) expireBan(quota, now, rules?.maxLengthMs);
}

function expireWindow(window: Window, lengthMs: number, now: number): void {
  if (window.openedAt > now) window.openedAt = now;
  if (window.graceBeganAt > now) window.graceBeganAt = now;
  if (now < window.openedAt + lengthMs) return;
  window.used = 0;
  clearStrikes(window);
}

function expireBan(quota: Quota, now: number, maxLengthMs = Infinity): void {
  if (quota.bannedAt !== NEVER) {
    const earlyMs = Math.max(0, quota.bannedAt - now);
    quota.bannedAt -= earlyMs;
    quota.bannedUntil = Math.min(quota.bannedUntil - earlyMs, quota.bannedAt + maxLengthMs);
    if (isBanned(quota, now)) return;
    quota.lastBanMs = quota.bannedUntil - quota.bannedAt;
    quota.bannedAt = NEVER;
  }
  quota.bannedUntil = Math.min(quota.bannedUntil, now);
  if (now >= quota.bannedUntil + DAY_MS) clearBan(quota);
}

export function isBanned({ bannedAt, bannedUntil }: Quota, now: number): boolean {
  return bannedAt !== NEVER && now < bannedUntil;
}

function nextBanMs({ lastBanMs }: Quota, { lengthMs, maxLengthMs }: BanRules): number {
  return Math.max(lengthMs, Math.min(2 * lastBanMs, maxLengthMs));
}

function clearBan(quota: Quota): void {
  quota.bannedAt = NEVER;
  quota.bannedUntil = NEVER;
  quota.lastBanMs = 0;
}

function clearStrikes(window: Window): void {
  window.graceBeganAt = NEVER;
  window.strikes = 0;
}

function count(window: Window, now: number): void {
  if (window.used === 0) window.openedAt = now;
  window.used++;
}

/** Records a rejection, which is a strike after the grace period. A ban clears the strikes that led to it. */
function countRejection(window: Window, now: number, rules: BanRules): "limit" | "ban" {
  const isStrike = window.graceBeganAt !== NEVER && now - window.graceBeganAt > rules.graceMs;
  if (isStrike) window.strikes++;
  if (isStrike || window.graceBeganAt === NEVER) window.graceBeganAt = now;
  if (window.strikes < rules.strikes) return "limit";
  window.strikes = 0;
  return "ban";
}

/** Clears the current or last ban if it began by `at`, and the strikes of windows that opened by then. */
export function unban(quota: Quota, at: number): void {
  const { bannedAt, bannedUntil, lastBanMs } = quota;
  const beganAt = bannedAt === NEVER ? bannedUntil - lastBanMs : bannedAt;
  if (beganAt <= at) clearBan(quota);
  if (quota.minute.openedAt <= at) clearStrikes(quota.minute);
  if (quota.day.openedAt <= at) clearStrikes(quota.day);
}

/** Whether an unban would change something: the current ban, the last one, or strikes. */
export function canUnban({ bannedUntil, minute, day }: Quota): boolean {
  return bannedUntil !== NEVER || minute.strikes + day.strikes > 0;
}

/** Whether both windows are open. */
export function isOpen({ minute, day }: Quota, now: number): boolean {
  return minute.used > 0 && now < minute.openedAt + MINUTE_MS && day.used > 0 && now < day.openedAt + DAY_MS;
}

/** Times of two clocks that are nearer than this are the same, and so are windows that close so soon. */
const SAME_MS = 1_000;

/** Whether these are one time, which two readings of a clock have moved. */
export function isSameTime(one: number, other: number): boolean {
  return Math.abs(one - other) < SAME_MS;
}

/**
 * Continues with what another counter knew: takes of each window the larger count, the later ban, and the strikes since
 * then. Doing it twice changes nothing.
 */
export function merge(quota: Quota, known: Quota, now: number, rules?: BanRules): void {
  expire(quota, now, rules);
  expire(known, now, rules);
  const laterByMs = known.bannedUntil - quota.bannedUntil;
  const [earlier] = laterByMs > SAME_MS ? [quota] : laterByMs < -SAME_MS ? [known] : [];
  if (earlier) {
    clearStrikes(earlier.minute);
    clearStrikes(earlier.day);
  }
  if (earlier === quota) {
    quota.bannedAt = known.bannedAt;
    quota.bannedUntil = known.bannedUntil;
    quota.lastBanMs = known.lastBanMs;
  }
  mergeWindow(quota.minute, MINUTE_MS, known.minute);
  mergeWindow(quota.day, DAY_MS, known.day);
}

/** Whether `merge` would add requests, strikes or a later ban. */
export function lacks(quota: Quota, known: Quota, now: number, rules?: BanRules): boolean {
  const merged = copyOf(quota);
  merge(merged, copyOf(known), now, rules);
  expire(quota, now, rules);
  return (
    hasMore(merged.minute, quota.minute) ||
    hasMore(merged.day, quota.day) ||
    merged.bannedUntil > quota.bannedUntil
  );
}

function hasMore(window: Window, than: Window): boolean {
  return window.used > than.used || window.strikes > than.strikes;
}

/**
 * Windows that are open at the same time are one, from the opening of the first. One that opened as the other closed is
 * the next one.
 */
function mergeWindow(window: Window, lengthMs: number, known: Window): void {
  if (known.used === 0) return;
  const laterByMs = known.openedAt - window.openedAt;
  if (window.used === 0 || laterByMs >= lengthMs - SAME_MS) return void Object.assign(window, known);
  if (laterByMs <= SAME_MS - lengthMs) return;
  window.openedAt = Math.min(window.openedAt, known.openedAt);
  window.used = Math.max(window.used, known.used);
  window.graceBeganAt = Math.max(window.graceBeganAt, known.graceBeganAt);
  window.strikes = Math.max(window.strikes, known.strikes);
}

export function copyOf({ minute, day, ...ban }: Quota): Quota {
  return { minute: { ...minute }, day: { ...day }, ...ban };
}

/** Moves every time by as much as the clock was set, so that windows and the ban keep their length. */
export function shift(quota: Quota, byMs: number): void {
  for (const window of [quota.minute, quota.day]) {
    window.openedAt += byMs;
    if (window.graceBeganAt !== NEVER) window.graceBeganAt += byMs;
  }
  if (quota.bannedAt !== NEVER) quota.bannedAt += byMs;
  if (quota.bannedUntil !== NEVER) quota.bannedUntil += byMs;
}

/** Whether this quota can be deleted without changing any decision. */
export function isExpired(quota: Quota, now: number): boolean {
  return now >= expiresAt(quota);
}

/** Returns when both windows are closed and the ban has been over for so long that it does not double the next one. */
export function expiresAt({ minute, day, bannedUntil }: Quota): number {
  return Math.max(
    minute.used === 0 ? NEVER : minute.openedAt + MINUTE_MS,
    day.used === 0 ? NEVER : day.openedAt + DAY_MS,
    bannedUntil === NEVER ? NEVER : bannedUntil + DAY_MS,
  );
}
