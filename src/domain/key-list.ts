import type { Access, ApiKey } from "./api-keys.ts";
import type { PlanName } from "./plans.ts";

export const KEY_STATES = ["active", "banned", "disabled", "expired", "revoked"] as const;
export type KeyState = (typeof KEY_STATES)[number];

export type KeySort = "id" | "name" | "plan" | "createdAt" | "lastUsedAt" | "usedToday";

/** Every condition that is given has to hold. Times are milliseconds since the epoch. */
export interface KeyFilter {
  readonly plan?: PlanName | undefined;
  readonly state?: KeyState | undefined;
  readonly access?: Access | undefined;
  /** The whole owner, in upper or lower case. */
  readonly owner?: string | undefined;
  /** A whole label, in upper or lower case. */
  readonly label?: string | undefined;
  /** Last used before this time. A key without any use counts from its creation. */
  readonly unusedSince?: number | undefined;
  /** Has called a deprecated operation since. */
  readonly deprecatedSince?: number | undefined;
  /** A part of the name, the owner, a label or the hint of a secret, in upper or lower case; or the identifier. */
  readonly search?: string | undefined;
}

/** Keys that compare as equal are in the order of their identifiers. */
export interface KeyListQuery {
  readonly filter?: KeyFilter;
  readonly sort?: KeySort;
  readonly isDescending?: boolean;
  /** The last key of the page before. It need not match the filter any more. */
  readonly after?: number | undefined;
  readonly limit: number;
  /** In milliseconds since the epoch. States, hints and the use of today depend on it. */
  readonly now: number;
  /** Which keys are banned: for a filter by state, because the rate limiter knows it and not the store. */
  readonly bannedKeys?: readonly number[];
}

export interface KeyList<Key = ApiKey> {
  readonly items: readonly Key[];
  /** Of all pages. */
  readonly total: number;
  readonly hasMore: boolean;
}

/** What can be a part of a hint. Less than four characters are in many hints by chance. */
const HINT_PART = /^[\w…]{4,}$/;

export function canBePartOfHint(text: string): boolean {
  return HINT_PART.test(text);
}

export function stateOf(key: ApiKey, isBanned: boolean, now: number): KeyState {
  // Also if the clock is behind the clock of the machine that revoked it.
  if (key.revokedAt !== undefined) return "revoked";
  if (key.expiresAt !== undefined && key.expiresAt <= now) return "expired";
  if (key.disabledAt !== undefined) return "disabled";
  return isBanned ? "banned" : "active";
}
