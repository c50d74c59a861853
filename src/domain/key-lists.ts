import type { Access } from "./key-fields.ts";
import type { PlanName } from "./plans.ts";
import type { ApiKey, KeyState } from "./api-keys.ts";

export const KEY_SORTS = ["id", "name", "plan", "createdAt", "lastUsedAt", "usedToday"] as const;
export type KeySort = (typeof KEY_SORTS)[number];

/** Every condition that is given has to hold. Times are milliseconds since the epoch. */
export interface KeyFilter {
  readonly plan?: PlanName | undefined;
  readonly state?: KeyState | undefined;
  readonly access?: Access | undefined;
  /** The owner, in upper or lower case. */
  readonly owner?: string | undefined;
  /** One of the labels, in upper or lower case. */
  readonly label?: string | undefined;
  /** The key was last used, or was created without any use, before this time. */
  readonly unusedSince?: number | undefined;
  /** The key has called a deprecated operation since this time. */
  readonly deprecatedSince?: number | undefined;
  /** The key is valid now and expires before this time. */
  readonly expiresBefore?: number | undefined;
  readonly isRevoked?: boolean | undefined;
  /** The key is one of these. */
  readonly ids?: readonly number[] | undefined;
  /** A part of the name, the owner, a label or the hint of a secret, in upper or lower case; or the identifier. */
  readonly search?: string | undefined;
}

/** Revoked keys come last in every order. Keys that compare as equal are ordered by their identifiers. */
export interface KeyListQuery {
  readonly filter?: KeyFilter;
  readonly sort?: KeySort;
  readonly isDescending?: boolean;
  /** The last key of the page before, which may no longer match the filter. */
  readonly after?: number | undefined;
  readonly limit: number;
  /** The time in milliseconds since the epoch, on which states and hints depend. */
  readonly now: number;
  /** The banned keys, on which states depend. The rate limiter knows them; the store does not. */
  readonly bannedKeys?: readonly number[];
  /** The requests in the window of 24 hours by key, for that order. The rate limiter knows them too. */
  readonly usedToday?: readonly (readonly [keyId: number, used: number])[];
}

export interface KeyList<Key = ApiKey> {
  readonly items: readonly Key[];
  /** The number of keys on all pages. */
  readonly total: number;
  /** The number of keys in each state that match the filters other than `state` and `isRevoked`. */
  readonly counts: Readonly<Record<KeyState, number>>;
  readonly hasMore: boolean;
}
