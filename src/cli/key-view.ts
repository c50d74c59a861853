import { grouped } from "../config/kinds.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import { type BanRules, DAY_MS, type Limits, MINUTE_MS, newUsage, settle } from "../domain/rate-limit.ts";
import type { Window } from "../domain/rate-limit.ts";
import { limitsOf, type PlanName, type Plans } from "../domain/plans.ts";
import type { Standings, Unknown } from "./standings.ts";

/** A key as commands print it: never a secret, nor anything made from one. Times are RFC 3339. */
export interface KeyView {
  readonly id: number;
  readonly name: string;
  readonly plan: PlanName;
  readonly limits: Limits;
  readonly state: "active" | "expired" | "revoked" | "banned";
  /** Null when it is not known right now; nor are strikes and bans then. */
  readonly use: { readonly minute: WindowView; readonly day: WindowView } | null;
  /** Of the window that is closer to a ban. */
  readonly strikes: number | null;
  readonly bannedUntil: string | null;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
}

export interface WindowView {
  readonly used: number;
  readonly limit: number;
  readonly resetsAt: string | null;
}

export interface ViewOptions {
  readonly plans: Plans;
  readonly ban: BanRules;
  readonly now: number;
  readonly standings: Standings | Unknown;
}

export function viewOf(key: ApiKey, { plans, ban, now, standings }: ViewOptions): KeyView {
  const limits = limitsOf(key, plans);
  const current = "unknown" in standings ? undefined : (standings.get(key.id) ?? newUsage());
  if (current) settle(current, now, ban);
  const bannedUntil = current && now < current.bannedUntil ? current.bannedUntil : undefined;
  return {
    id: key.id,
    name: key.name,
    plan: key.plan,
    limits,
    state: stateOf(key, bannedUntil !== undefined, now),
    use: current
      ? {
          minute: windowView(current.minute, limits.perMinute, MINUTE_MS),
          day: windowView(current.day, limits.perDay, DAY_MS),
        }
      : null,
    strikes: current ? Math.max(current.minute.strikes, current.day.strikes) : null,
    bannedUntil: bannedUntil === undefined ? null : rfc3339(bannedUntil),
    createdAt: rfc3339(key.createdAt),
    expiresAt: key.expiresAt === undefined ? null : rfc3339(key.expiresAt),
    revokedAt: key.revokedAt === undefined ? null : rfc3339(key.revokedAt),
  };
}

function stateOf(key: ApiKey, banned: boolean, now: number): KeyView["state"] {
  if (key.revokedAt !== undefined && key.revokedAt <= now) return "revoked";
  if (key.expiresAt !== undefined && key.expiresAt <= now) return "expired";
  return banned ? "banned" : "active";
}

function windowView({ used, openedAt }: Window, limit: number, lengthMs: number): WindowView {
  return { used, limit, resetsAt: used === 0 ? null : rfc3339(openedAt + lengthMs) };
}

export function rfc3339(ms: number): string {
  return new Date(ms).toISOString();
}

/** As `60 a minute, 1,000 a day`. */
export function limitsInWords({ perMinute, perDay }: Limits): string {
  return `${grouped(perMinute)} a minute, ${grouped(perDay)} a day`;
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
