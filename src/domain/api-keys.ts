import { Rejection, Unavailable } from "../api/errors.ts";
import { formatTime } from "../text/formatting.ts";
import { KEY_PREFIX } from "./secrets.ts";
import { crc32, sha256 } from "../runtime/hash.ts";
import type { NullableField } from "./fields.ts";
import type { Access, KEY_FIELDS, PlanName, StoredKey } from "./key-fields.ts";
import { DAY_MS, type Limits } from "./rate-limit.ts";

export const ENVIRONMENTS = ["production", "staging"] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** The API key that a request is made with. */
export interface ApiKeyPrincipal {
  readonly keyId: number;
  readonly plan: PlanName;
  readonly limits: Limits;
  readonly access: Access;
}

/** What a request without a valid key is rejected for. */
export const AUTH_FAILURES = [
  "missing_api_key",
  "invalid_api_key",
  "disabled_api_key",
  "expired_api_key",
  "staging_api_key",
  "production_api_key",
] as const;
/** Why a request has no principal. */
export type AuthFailure = (typeof AUTH_FAILURES)[number] | Unavailable;

export function isPrincipal(result: ApiKeyPrincipal | AuthFailure | undefined): result is ApiKeyPrincipal {
  return typeof result === "object" && !(result instanceof Unavailable);
}

/** A key without its secrets. Times are milliseconds since the epoch. */
export interface ApiKey extends Omit<StoredKey, keyof Limits> {
  /** The key's own limits, for Enterprise only. */
  readonly limits?: Limits;
  /** When an operator last unbanned the key. */
  readonly unbannedAt?: number;
}

/** Returns the values of the fields. */
export function storedKeyOf<Key extends ApiKey | NewKey>({
  limits,
  ...key
}: Key): Omit<Key, "limits"> & Partial<Limits> {
  return { ...key, ...limits };
}

/** Makes a key of the values of its fields. */
export function apiKeyOf({ perMinute, perDay, ...key }: StoredKey): ApiKey {
  const hasLimits = perMinute !== undefined && perDay !== undefined;
  return { ...key, ...(hasLimits && { limits: { perMinute, perDay } }) };
}

/** The fields that a new key has unless others are given. */
export const NEW_KEY_DEFAULTS = { labels: [], access: "write" } as const satisfies Partial<ApiKey>;

type DefaultField = keyof typeof NEW_KEY_DEFAULTS;

export type NewKey = Omit<ApiKey, "id" | "revokedAt" | "unbannedAt" | DefaultField> &
  Partial<Pick<ApiKey, DefaultField>>;

/** The fields that a change can remove. A revoked key stays revoked. */
type RemovableField = Exclude<NullableField<typeof KEY_FIELDS>, "revokedAt" | keyof Limits>;

/** Null removes the value. */
export type KeyChange = Partial<Omit<ApiKey, "id" | "createdAt" | RemovableField>> & {
  readonly [K in RemovableField]?: ApiKey[K] | null;
};

/** A secret as operators see it. Secrets of earlier releases have neither hint nor time of creation. */
export interface KeySecret {
  /** The prefix, the first four and the last four characters: `pet_live_aB3d…x9Kq`. */
  readonly hint?: string;
  readonly createdAt?: number;
  /** Set on a secret that was replaced: from this time on, only its successor works. */
  readonly validUntil?: number;
}

/** What is stored of a new secret. */
export interface NewSecret {
  /** The SHA-256 of the secret, in hexadecimal. */
  readonly hash: string;
  readonly hint: string;
}

/** A secret that was found, and its key. */
export interface Credential {
  readonly key: ApiKey;
  /** Set on a secret that was replaced: from this time on, only its successor works. */
  readonly validUntil?: number;
}

/** Returns the environment of a secret by its prefix. */
export function environmentOf(secret: string): Environment | undefined {
  return ENVIRONMENTS.find((environment) => secret.startsWith(KEY_PREFIX[environment]));
}

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH = 30;
const CHECK_LENGTH = 6;
const SECRET = new RegExp(`^(?:${Object.values(KEY_PREFIX).join("|")})[0-9A-Za-z]{36}$`);
/** The greatest multiple of 62 in a byte. Bytes from it on are discarded, so that every character is equally likely. */
const FAIR_BYTES = 248;

/** Generates a secret: prefix, 30 random base62 characters (178 bits), six characters of checksum. */
export function generateSecret(environment: Environment): string {
  const secret = KEY_PREFIX[environment] + randomBase62(RANDOM_LENGTH);
  return secret + checksum(secret);
}

/** Generates random letters and digits. A double click selects all of them, and a URL needs no escapes. */
export function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length * 2))) {
      if (byte < FAIR_BYTES && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
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

/** Detects typing errors without a lookup. */
export function isWellFormedSecret(text: string, environment: Environment): boolean {
  if (!SECRET.test(text) || !text.startsWith(KEY_PREFIX[environment])) return false;
  return checksum(text.slice(0, -CHECK_LENGTH)) === text.slice(-CHECK_LENGTH);
}

const HINT_LENGTH = 4;

/** Returns the part of a secret by which operators recognize it. 130 of its 178 bits stay unknown. */
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

/**
 * Returns the time from which a credential is invalid. A key that is revoked or disabled is invalid now, even if the
 * clock of the machine that changed it was ahead.
 */
export function validUntil({ key, validUntil: replaced = Infinity }: Credential): number {
  if (key.revokedAt !== undefined || key.disabledAt !== undefined) return -Infinity;
  return Math.min(replaced, key.expiresAt ?? Infinity);
}

/** Returns why a credential is invalid from that time on. */
export function credentialFailure({ key, validUntil: replaced = Infinity }: Credential): AuthFailure {
  if (key.revokedAt !== undefined) return "invalid_api_key";
  if (key.disabledAt !== undefined) return "disabled_api_key";
  return (key.expiresAt ?? Infinity) <= replaced ? "expired_api_key" : "invalid_api_key";
}

/** An Enterprise key has its own limits. `anonymous` applies to an IP address without a valid key. */
export type Plans = Readonly<Record<Exclude<PlanName, "enterprise"> | "anonymous", Limits>>;

export const DEFAULT_PLANS: Plans = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  anonymous: { perMinute: 300, perDay: 10_000 },
};

/** Returns the limits of the plan. Only an Enterprise key has its own. */
export function limitsOf(plan: PlanName, ownLimits: Limits | undefined, plans: Plans): Limits {
  return plan === "enterprise" ? (ownLimits ?? plans.business) : plans[plan];
}

/** How long before its expiry a key is shown and announced as one that expires soon. */
export const EXPIRES_SOON_MS = 7 * DAY_MS;

export const KEY_STATES = ["active", "banned", "disabled", "expired", "revoked"] as const;
export type KeyState = (typeof KEY_STATES)[number];

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

/** Fewer than four characters are in many hints by chance. */
const HINT_PART = /^[\w…]{4,}$/;

/** Without the ellipsis, more than four characters of a hint begin in the prefix, which excludes most words. */
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
  // The clock may be behind that of the machine that revoked the key.
  if (key.revokedAt !== undefined) return "revoked";
  if (key.expiresAt !== undefined && key.expiresAt <= now) return "expired";
  if (key.disabledAt !== undefined) return "disabled";
  return isBanned ? "banned" : "active";
}

export function keyNotFound(id: number | bigint): Rejection<"key_not_found"> {
  return new Rejection("key_not_found", `Key ${id} does not exist.`);
}

/** `change` completes the sentence "the key cannot be …". */
export function keyNotActive(
  { id, revokedAt, expiresAt }: Pick<ApiKey, "id" | "revokedAt"> & { expiresAt?: number | undefined },
  now: number,
  change: string,
): Rejection<"key_not_active"> | undefined {
  const reject = (what: string, at: number, remedy: string) =>
    new Rejection(
      "key_not_active",
      `Key ${id} ${what} at ${formatTime(at)} and cannot be ${change}; ${remedy}.`,
    );
  if (revokedAt !== undefined) return reject("was revoked", revokedAt, "create a new key");
  if (expiresAt === undefined || now < expiresAt) return undefined;
  return reject(
    "expired",
    expiresAt,
    `a new expiry makes it valid again: petstore keys update ${id} --expires 30d`,
  );
}
