import { Rejection, Unavailable } from "../api/errors.ts";
import { formatTime } from "../text/formatting.ts";
import type { NullableField } from "./fields.ts";
import type { Access, KEY_FIELDS, StoredKey } from "./key-fields.ts";
import type { PlanName } from "./plans.ts";
import { type Limits } from "./rate-limit.ts";
import { DAY_MS } from "../text/time-units.ts";

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

/** A secret that was found, and its key. */
export interface Credential {
  readonly key: ApiKey;
  /** Set on a secret that was replaced: from this time on, only its successor works. */
  readonly validUntil?: number;
}

/**
 * Returns the time from which a credential is invalid. A key that is revoked or disabled is invalid now, even if the
 * clock of the machine that changed it was ahead.
 */
export function invalidFrom({ key, validUntil: replaced = Infinity }: Credential): number {
  if (key.revokedAt !== undefined || key.disabledAt !== undefined) return -Infinity;
  return Math.min(replaced, key.expiresAt ?? Infinity);
}

/** Returns why a credential is invalid from that time on. */
export function credentialFailure({ key, validUntil: replaced = Infinity }: Credential): AuthFailure {
  if (key.revokedAt !== undefined) return "invalid_api_key";
  if (key.disabledAt !== undefined) return "disabled_api_key";
  return (key.expiresAt ?? Infinity) <= replaced ? "expired_api_key" : "invalid_api_key";
}

/** How long before its expiry a key is shown and announced as one that expires soon. */
export const EXPIRES_SOON_MS = 7 * DAY_MS;

export const KEY_STATES = ["active", "banned", "disabled", "expired", "revoked"] as const;
export type KeyState = (typeof KEY_STATES)[number];

export function keyState(
  key: ApiKey,
  { isBanned, now }: { readonly isBanned: boolean; readonly now: number },
): KeyState {
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
