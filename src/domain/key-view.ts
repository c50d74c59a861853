import { formatOptionalTime, formatTime } from "../api/formatting.ts";
import type { Access, ApiKey, KeySecret } from "./api-keys.ts";
import { limitsOf, type PlanName, type Plans } from "./plans.ts";
import {
  type BanRules,
  DAY_MS,
  expire,
  type Limits,
  MINUTE_MS,
  newUsage,
  type Usage,
  type Window,
} from "./rate-limit.ts";

export const KEY_STATES = ["active", "banned", "disabled", "expired", "revoked"] as const;
export type KeyState = (typeof KEY_STATES)[number];

/** A key as operators see it: without secrets and their hashes. Times are RFC 3339; null where there is no value. */
export interface KeyView {
  readonly id: number;
  readonly name: string;
  readonly owner: string | null;
  readonly notes: string | null;
  readonly labels: readonly string[];
  readonly plan: PlanName;
  readonly limits: Limits;
  readonly access: Access;
  readonly state: KeyState;
  /** Those that have not ended, newest first: more than one during the overlap after a roll. */
  readonly secrets: readonly SecretView[];
  /** Null while it cannot be read; strikes and bannedUntil are null then too. */
  readonly usage: { readonly minute: WindowView; readonly day: WindowView } | null;
  /** In the window with more of them. */
  readonly strikes: number | null;
  readonly bannedUntil: string | null;
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
}

/** A secret of an earlier release has neither hint nor time of creation. */
interface SecretView {
  readonly hint: string | null;
  readonly createdAt: string | null;
  readonly validUntil: string | null;
}

interface WindowView {
  readonly used: number;
  readonly limit: number;
  readonly resetsAt: string | null;
}

/** By key ID. A key that is not in the map has not been used. */
export type KeyUsage = ReadonlyMap<number, Usage>;

/** The usage cannot be read. */
export interface UsageUnavailable {
  readonly reason: string;
}

interface ViewOptions {
  readonly plans: Plans;
  readonly ban: BanRules;
  readonly now: number;
  readonly usage: KeyUsage | UsageUnavailable;
  /** By key ID, as KeyStore.listSecrets returns them. */
  readonly secrets: ReadonlyMap<number, readonly KeySecret[]>;
  /** By key ID, as UsageHistoryStore.lastUsed returns it. */
  readonly lastUsed: ReadonlyMap<number, number>;
}

export function keyView(key: ApiKey, options: ViewOptions): KeyView {
  const { plans, ban, now, usage } = options;
  const limits = limitsOf(key, plans);
  const current = "reason" in usage ? undefined : (usage.get(key.id) ?? newUsage());
  if (current) expire(current, now, ban);
  const bannedUntil = current && now < current.bannedUntil ? current.bannedUntil : undefined;
  return {
    id: key.id,
    name: key.name,
    owner: key.owner ?? null,
    notes: key.notes ?? null,
    labels: key.labels,
    plan: key.plan,
    limits,
    access: key.access,
    state: stateOf(key, bannedUntil !== undefined, now),
    secrets: liveSecrets(options.secrets.get(key.id) ?? [], now).map(secretView),
    usage: current
      ? {
          minute: windowView(current.minute, limits.perMinute, MINUTE_MS),
          day: windowView(current.day, limits.perDay, DAY_MS),
        }
      : null,
    strikes: current ? Math.max(current.minute.strikes, current.day.strikes) : null,
    bannedUntil: formatOptionalTime(bannedUntil),
    createdAt: formatTime(key.createdAt),
    expiresAt: formatOptionalTime(key.expiresAt),
    revokedAt: formatOptionalTime(key.revokedAt),
    lastUsedAt: formatOptionalTime(options.lastUsed.get(key.id)),
  };
}

export function stateOf(key: ApiKey, isBanned: boolean, now: number): KeyState {
  // Also if the clock is behind the clock of the machine that revoked it.
  if (key.revokedAt !== undefined) return "revoked";
  if (key.expiresAt !== undefined && key.expiresAt <= now) return "expired";
  if (key.disabledAt !== undefined) return "disabled";
  return isBanned ? "banned" : "active";
}

/** Those that still work. */
function liveSecrets(secrets: readonly KeySecret[], now: number): readonly KeySecret[] {
  return secrets.filter(({ validUntil }) => validUntil === undefined || now < validUntil);
}

function secretView({ hint, createdAt, validUntil }: KeySecret): SecretView {
  return {
    hint: hint ?? null,
    createdAt: formatOptionalTime(createdAt),
    validUntil: formatOptionalTime(validUntil),
  };
}

function windowView({ used, openedAt }: Window, limit: number, lengthMs: number): WindowView {
  return { used, limit, resetsAt: used === 0 ? null : formatTime(openedAt + lengthMs) };
}
