import type { ApiKey } from "../domain/api-keys.ts";
import { limitsOf, type PlanName, type Plans } from "../domain/plans.ts";
import {
  type BanRules,
  DAY_MS,
  type Limits,
  MINUTE_MS,
  newUsage,
  expire,
  type Window,
} from "../domain/rate-limit.ts";
import type { KeyUsage, UsageUnavailable } from "./key-usage.ts";
import { formatTime } from "./output.ts";

/** A key as `keys show` and `keys list` print it: without secrets and their hashes. Times are RFC 3339. */
export interface KeyView {
  readonly id: number;
  readonly name: string;
  readonly plan: PlanName;
  readonly limits: Limits;
  readonly state: "active" | "expired" | "revoked" | "banned";
  /** Null while it cannot be read; strikes and bannedUntil are null then too. */
  readonly usage: { readonly minute: WindowView; readonly day: WindowView } | null;
  /** In the window with more of them. */
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
  readonly usage: KeyUsage | UsageUnavailable;
}

export function keyView(key: ApiKey, { plans, ban, now, usage }: ViewOptions): KeyView {
  const limits = limitsOf(key, plans);
  const current = "reason" in usage ? undefined : (usage.get(key.id) ?? newUsage());
  if (current) expire(current, now, ban);
  const bannedUntil = current && now < current.bannedUntil ? current.bannedUntil : undefined;
  return {
    id: key.id,
    name: key.name,
    plan: key.plan,
    limits,
    state: stateOf(key, bannedUntil !== undefined, now),
    usage: current
      ? {
          minute: windowView(current.minute, limits.perMinute, MINUTE_MS),
          day: windowView(current.day, limits.perDay, DAY_MS),
        }
      : null,
    strikes: current ? Math.max(current.minute.strikes, current.day.strikes) : null,
    bannedUntil: bannedUntil === undefined ? null : formatTime(bannedUntil),
    createdAt: formatTime(key.createdAt),
    expiresAt: key.expiresAt === undefined ? null : formatTime(key.expiresAt),
    revokedAt: key.revokedAt === undefined ? null : formatTime(key.revokedAt),
  };
}

function stateOf(key: ApiKey, isBanned: boolean, now: number): KeyView["state"] {
  // Also if the clock is behind the clock of the machine that revoked it.
  if (key.revokedAt !== undefined) return "revoked";
  if (key.expiresAt !== undefined && key.expiresAt <= now) return "expired";
  return isBanned ? "banned" : "active";
}

function windowView({ used, openedAt }: Window, limit: number, lengthMs: number): WindowView {
  return { used, limit, resetsAt: used === 0 ? null : formatTime(openedAt + lengthMs) };
}
