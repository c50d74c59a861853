import type { Unavailable } from "../api/errors.ts";
import { KEY_PREFIX } from "./constants.ts";
import { crc32, sha256 } from "../runtime/hash.ts";
import type { Limits, Subject } from "./rate-limit.ts";

export const ENVIRONMENTS = ["production", "staging"] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** A key with the access `read` may GET and HEAD, and nothing else. */
export const ACCESS_LEVELS = ["read", "write"] as const;
export type Access = (typeof ACCESS_LEVELS)[number];

/** The API key that a request is made with. */
export interface ApiKeyPrincipal {
  readonly keyId: number;
  readonly subject: Subject;
  readonly plan: PlanName;
  readonly limits: Limits;
  readonly access: Access;
}

/** Why a request has no principal. */
export type AuthFailure =
  | "missing_api_key"
  | "invalid_api_key"
  | "disabled_api_key"
  | "staging_api_key"
  | "production_api_key"
  | Unavailable;

/** What an operator sees of a key: everything but its secrets. Times are milliseconds since the epoch. */
export interface ApiKey {
  readonly id: number;
  readonly name: string;
  /** An email address or a reference. */
  readonly owner?: string;
  readonly notes?: string;
  readonly labels: readonly string[];
  readonly plan: PlanName;
  /** Enterprise only: the key's own numbers. */
  readonly limits?: Limits;
  readonly access: Access;
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
  /** Set while the key is switched off. */
  readonly disabledAt?: number;
  /** When an operator last ended the ban of the key, if there was one. */
  readonly unbannedAt?: number;
}

/** Without `labels` there are none; without `access` it is `write`. */
export type NewKey = Pick<ApiKey, "name" | "plan" | "limits" | "createdAt" | "expiresAt"> &
  Partial<Pick<ApiKey, "owner" | "notes" | "labels" | "access" | "disabledAt">>;

/** Null removes the value. */
export type KeyChange = Partial<
  Pick<ApiKey, "name" | "labels" | "plan" | "limits" | "access" | "revokedAt" | "unbannedAt">
> & {
  readonly owner?: string | null;
  readonly notes?: string | null;
  readonly expiresAt?: number | null;
  readonly disabledAt?: number | null;
};

/** What an operator sees of a secret. Secrets of earlier releases have neither hint nor time of creation. */
export interface KeySecret {
  /** The prefix, the first four and the last four characters: `pet_live_aB3d…x9Kq`. */
  readonly hint?: string;
  readonly createdAt?: number;
  /** Set on a secret that was replaced: from then on only its successor works. */
  readonly validUntil?: number;
}

/** What is stored of a new secret. */
export interface NewSecret {
  /** SHA-256, in hexadecimal. */
  readonly hash: string;
  readonly hint: string;
}

/** A secret that was found, and the key it opens. */
export interface Credential {
  readonly key: ApiKey;
  /** Set on a secret that was replaced: from then on only its successor works. */
  readonly validUntil?: number;
}

/** That a secret is for, by its prefix. */
export function environmentOf(secret: string): Environment | undefined {
  return ENVIRONMENTS.find((environment) => secret.startsWith(KEY_PREFIX[environment]));
}

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH = 30;
const CHECK_LENGTH = 6;
const SECRET = new RegExp(`^(?:${Object.values(KEY_PREFIX).join("|")})[0-9A-Za-z]{36}$`);
/** The greatest multiple of 62 in a byte; bytes above it are thrown away so that every character is equally likely. */
const FAIR_BYTES = 248;

/** A new secret: prefix, 30 random base62 characters (178 bits), six characters of checksum. */
export function generateSecret(environment: Environment): string {
  let secret: string = KEY_PREFIX[environment];
  const length = secret.length + RANDOM_LENGTH;
  while (secret.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(RANDOM_LENGTH * 2))) {
      if (byte < FAIR_BYTES && secret.length < length) secret += ALPHABET[byte % ALPHABET.length];
    }
  }
  return secret + checksum(secret);
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECK_LENGTH; i++) {
    digits = ALPHABET[rest % ALPHABET.length] + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits;
}

/** Turns typing errors away before any lookup. */
export function isWellFormedSecret(text: string, environment: Environment): boolean {
  if (!SECRET.test(text) || !text.startsWith(KEY_PREFIX[environment])) return false;
  return checksum(text.slice(0, -CHECK_LENGTH)) === text.slice(-CHECK_LENGTH);
}

const HINT_LENGTH = 4;

/** Tells the secrets of an operator apart, and leaves 130 of the 178 bits unknown. */
export function hintOf(secret: string): string {
  const start = secret.lastIndexOf("_") + 1 + HINT_LENGTH;
  return `${secret.slice(0, start)}…${secret.slice(-HINT_LENGTH)}`;
}

export function toNewSecret(secret: string): NewSecret {
  return { hash: hashSecret(secret), hint: hintOf(secret) };
}

export function hashSecret(secret: string): string {
  return sha256(secret);
}

/** The end of validity of a secret whose key is disabled: in the past, and no time that a key can have. */
export const VALID_UNTIL_WHILE_DISABLED = -1;

/**
 * The instant from which a credential no longer opens anything. A key that is revoked is so now, whatever the clock of
 * the machine said on which that was done.
 */
export function validUntil({ key, validUntil: replaced = Infinity }: Credential): number {
  if (key.revokedAt !== undefined) return -Infinity;
  return key.disabledAt === undefined
    ? Math.min(replaced, key.expiresAt ?? Infinity)
    : VALID_UNTIL_WHILE_DISABLED;
}

export const PLANS = ["free", "pro", "business", "enterprise"] as const;
export type PlanName = (typeof PLANS)[number];

/** An Enterprise key has its own limits. `anonymous` applies to an IP address without a valid key. */
export type Plans = Readonly<Record<Exclude<PlanName, "enterprise"> | "anonymous", Limits>>;

export const DEFAULT_PLANS: Plans = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  anonymous: { perMinute: 300, perDay: 10_000 },
};

/** Only an Enterprise key has its own limits. */
export function limitsOf(key: { readonly plan: PlanName; readonly limits?: Limits }, plans: Plans): Limits {
  return key.plan === "enterprise" ? (key.limits ?? plans.business) : plans[key.plan];
}

export const KEY_STATES = ["active", "banned", "disabled", "expired", "revoked"] as const;
export type KeyState = (typeof KEY_STATES)[number];

export const KEY_SORTS = ["id", "name", "plan", "createdAt", "lastUsedAt", "usedToday"] as const;
export type KeySort = (typeof KEY_SORTS)[number];

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

/** Less than four characters are in many hints by chance. */
const HINT_PART = /^[\w…]{4,}$/;

/** Most words cannot: without the ellipsis, more than four characters begin in the prefix. */
export function canBePartOfHint(text: string): boolean {
  if (!HINT_PART.test(text)) return false;
  if (text.length === 4 || text.includes("…")) return true;
  const lowerCase = text.toLowerCase();
  return Object.values(KEY_PREFIX).some(
    (prefix) =>
      prefix.includes(lowerCase) || [1, 2, 3, 4].some((n) => prefix.endsWith(lowerCase.slice(0, -n))),
  );
}

export function stateOf(key: ApiKey, isBanned: boolean, now: number): KeyState {
  // Also if the clock is behind the clock of the machine that revoked it.
  if (key.revokedAt !== undefined) return "revoked";
  if (key.expiresAt !== undefined && key.expiresAt <= now) return "expired";
  if (key.disabledAt !== undefined) return "disabled";
  return isBanned ? "banned" : "active";
}
