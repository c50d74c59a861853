import type { Access, ApiKey, KeyChange, KeySecret, NewKey } from "../domain/api-keys.ts";
import type { PlanName } from "../domain/plans.ts";
import type { KeyChanges } from "../domain/ports.ts";
import type { SqlValue } from "./dialect.ts";

/*
 * Rows of keys and secrets as both databases return them, and the domain objects they become.
 */

/** Far below 2^53. SQLite gives numbers where there are thousands of rows, which is faster. */
type Int = bigint | number;

export interface KeyRow {
  readonly id: Int;
  readonly name: string;
  readonly owner: string | null;
  readonly notes: string | null;
  /** A JSON array. */
  readonly labels: string;
  readonly plan: PlanName;
  readonly access: Access;
  readonly perMinute: Int | null;
  readonly perDay: Int | null;
  readonly createdAt: Int;
  readonly expiresAt: Int | null;
  readonly revokedAt: Int | null;
  readonly unbannedAt: Int | null;
  readonly disabledAt: Int | null;
}

export const KEY_COLUMNS = `api_keys.id, name, owner, notes, labels, plan, access,
  per_minute AS "perMinute", per_day AS "perDay", created_at AS "createdAt",
  expires_at AS "expiresAt", revoked_at AS "revokedAt", pardoned_at AS "unbannedAt",
  disabled_at AS "disabledAt"`;

/** A row of the keys that changed. */
export type ChangedKeyRow = KeyRow & { readonly unbanRevision: Int | null };

export const CHANGED_KEY_COLUMNS = `${KEY_COLUMNS}, unban_revision AS "unbanRevision"`;

export function changesOf(rows: readonly ChangedKeyRow[], since: number): Omit<KeyChanges, "revision"> {
  const isUnbanned = ({ unbanRevision }: ChangedKeyRow) => unbanRevision !== null && unbanRevision > since;
  return { changed: rows.map(keyOf), unbanned: rows.filter(isUnbanned).map(keyOf) };
}

const NO_LABELS: readonly string[] = [];

type Writable<T> = { -readonly [P in keyof T]: T[P] };

/** Columns that are null in the row are absent from the key. A list makes thousands of keys, so nothing is copied. */
export function keyOf(row: KeyRow): ApiKey {
  const { owner, notes, labels, perMinute, perDay, expiresAt, revokedAt, unbannedAt, disabledAt } = row;
  const key: Writable<ApiKey> = {
    id: Number(row.id),
    name: row.name,
    labels: labels === "[]" ? NO_LABELS : JSON.parse(labels),
    plan: row.plan,
    access: row.access,
    createdAt: Number(row.createdAt),
  };
  if (owner !== null) key.owner = owner;
  if (notes !== null) key.notes = notes;
  if (perMinute !== null && perDay !== null) {
    key.limits = { perMinute: Number(perMinute), perDay: Number(perDay) };
  }
  if (expiresAt !== null) key.expiresAt = Number(expiresAt);
  if (revokedAt !== null) key.revokedAt = Number(revokedAt);
  if (unbannedAt !== null) key.unbannedAt = Number(unbannedAt);
  if (disabledAt !== null) key.disabledAt = Number(disabledAt);
  return key;
}

/** The columns that a new key and a change of a key write alike. */
export const WRITTEN_KEY_COLUMNS = [
  "name",
  "owner",
  "notes",
  "labels",
  "plan",
  "access",
  "per_minute",
  "per_day",
  "expires_at",
  "disabled_at",
] as const;

/** The values of WRITTEN_KEY_COLUMNS, in their order. */
export function keyValues(key: NewKey): (SqlValue | null)[] {
  const { name, owner = null, notes = null, labels = NO_LABELS, plan, access = "write", limits } = key;
  const { perMinute = null, perDay = null } = limits ?? {};
  const { expiresAt = null, disabledAt = null } = key;
  return [name, owner, notes, JSON.stringify(labels), plan, access, perMinute, perDay, expiresAt, disabledAt];
}

/** Null removes a value. Only Enterprise keys have limits of their own; on another plan those of the plan apply. */
export function applyChange(key: ApiKey, change: KeyChange): ApiKey {
  const { limits, owner, notes, expiresAt, disabledAt, revokedAt: _, ...changed } = { ...key, ...change };
  // Both hold also if somebody else has changed the key since it was checked.
  const ownLimits = changed.plan === "enterprise" ? limits : undefined;
  const revokedAt = key.revokedAt ?? change.revokedAt;
  return {
    ...changed,
    ...(revokedAt !== undefined && { revokedAt }),
    ...(ownLimits !== undefined && { limits: ownLimits }),
    ...(isPresent(owner) && { owner }),
    ...(isPresent(notes) && { notes }),
    ...(isPresent(expiresAt) && { expiresAt }),
    ...(isPresent(disabledAt) && { disabledAt }),
  };
}

function isPresent<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined;
}

export interface SecretRow {
  readonly keyId: Int;
  readonly hint: string | null;
  readonly createdAt: Int | null;
  readonly validUntil: Int | null;
}

/** `issued_at` and not `created_at`: earlier releases read `created_at` of a join with api_keys without its table. */
export const SECRET_COLUMNS = `key_id AS "keyId", hint, issued_at AS "createdAt", valid_until AS "validUntil"`;

export function secretsByKey(rows: readonly SecretRow[]): ReadonlyMap<number, readonly KeySecret[]> {
  const secrets = Map.groupBy(rows, ({ keyId }) => Number(keyId));
  return new Map([...secrets].map(([id, some]) => [id, some.map(secretOf).toSorted(newestFirst)]));
}

/** Columns that are null in the row are absent from the secret. */
function secretOf({ hint, createdAt, validUntil }: SecretRow): KeySecret {
  const secret: Writable<KeySecret> = {};
  if (hint !== null) secret.hint = hint;
  if (createdAt !== null) secret.createdAt = Number(createdAt);
  if (validUntil !== null) secret.validUntil = Number(validUntil);
  return secret;
}

/** Secrets of earlier releases have no time of creation, and come last. Of two, the one that works longer is newer. */
function newestFirst(a: KeySecret, b: KeySecret): number {
  const { createdAt = 0, validUntil = Number.MAX_SAFE_INTEGER } = a;
  return (b.createdAt ?? 0) - createdAt || (b.validUntil ?? Number.MAX_SAFE_INTEGER) - validUntil;
}
