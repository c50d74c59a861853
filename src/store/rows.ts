import type { Order, OrderStatus, Pet, PetStatus } from "../contract/resources.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import type { OrderWithKey } from "../domain/corrections.ts";
import type { PlanName } from "../domain/plans.ts";
import type { KeyChange, KeyChanges, Page } from "../domain/ports.ts";

/*
 * Rows as both databases return them, and the domain objects they become. Aliases are quoted because PostgreSQL folds
 * unquoted names to lower case.
 */

export interface PetRow {
  readonly id: bigint;
  readonly name: string;
  readonly categoryId: bigint;
  readonly status: PetStatus | null;
}

export const PET_COLUMNS = `id, name, category_id AS "categoryId", status`;

/** A status that is null in the row is absent from the pet. */
export function petOf(row: PetRow): Pet {
  return hasStatus(row) ? row : { id: row.id, name: row.name, categoryId: row.categoryId };
}

function hasStatus(row: PetRow): row is PetRow & { readonly status: PetStatus } {
  return row.status !== null;
}

export interface OrderRow {
  readonly id: bigint;
  readonly petId: bigint;
  readonly status: OrderStatus;
  readonly createdAt: bigint;
}

export const ORDER_COLUMNS = `id, pet_id AS "petId", status, created_at AS "createdAt"`;

export function orderOf({ id, petId, status, createdAt }: OrderRow): Order {
  return { id, petId, status, createdAt: new Date(Number(createdAt)).toISOString() };
}

/** The key is null where an earlier release recorded none. */
export type OrderWithKeyRow = OrderRow & { readonly keyId: bigint | null };

export const ORDER_WITH_KEY_COLUMNS = `${ORDER_COLUMNS}, key_id AS "keyId"`;

export function orderWithKeyOf(row: OrderWithKeyRow): OrderWithKey {
  return { ...orderOf(row), keyId: row.keyId === null ? null : Number(row.keyId) };
}

/** Every number is far below 2^53. */
export interface KeyRow {
  readonly id: bigint;
  readonly name: string;
  readonly plan: PlanName;
  readonly perMinute: bigint | null;
  readonly perDay: bigint | null;
  readonly createdAt: bigint;
  readonly expiresAt: bigint | null;
  readonly revokedAt: bigint | null;
  readonly unbannedAt: bigint | null;
}

export const KEY_COLUMNS = `api_keys.id, name, plan, per_minute AS "perMinute", per_day AS "perDay",
  created_at AS "createdAt", expires_at AS "expiresAt", revoked_at AS "revokedAt", pardoned_at AS "unbannedAt"`;

/** A row of the keys that changed. */
export type ChangedKeyRow = KeyRow & { readonly unbanRevision: bigint | null };

export const CHANGED_KEY_COLUMNS = `${KEY_COLUMNS}, unban_revision AS "unbanRevision"`;

export function changesOf(rows: readonly ChangedKeyRow[], since: number): Omit<KeyChanges, "revision"> {
  const isUnbanned = ({ unbanRevision }: ChangedKeyRow) => unbanRevision !== null && unbanRevision > since;
  return { changed: rows.map(keyOf), unbanned: rows.filter(isUnbanned).map(keyOf) };
}

/** Columns that are null in the row are absent from the key. */
export function keyOf(row: KeyRow): ApiKey {
  const { perMinute, perDay, expiresAt, revokedAt, unbannedAt } = row;
  const hasLimits = perMinute !== null && perDay !== null;
  return {
    id: Number(row.id),
    name: row.name,
    plan: row.plan,
    ...(hasLimits && { limits: { perMinute: Number(perMinute), perDay: Number(perDay) } }),
    createdAt: Number(row.createdAt),
    ...(expiresAt !== null && { expiresAt: Number(expiresAt) }),
    ...(revokedAt !== null && { revokedAt: Number(revokedAt) }),
    ...(unbannedAt !== null && { unbannedAt: Number(unbannedAt) }),
  };
}

/** Only Enterprise keys have limits of their own; on another plan the limits of the plan apply. */
export function applyChange(key: ApiKey, change: KeyChange): ApiKey {
  const { limits, ...changed } = { ...key, ...change };
  const ownLimits = change.limits ?? (changed.plan === "enterprise" ? limits : undefined);
  return ownLimits === undefined ? changed : { ...changed, limits: ownLimits };
}

/** Takes one row more than the limit where there is one: it shows that the page has a successor. */
export function pageOf<Row, T>(rows: Row[], limit: number, itemOf: (row: Row) => T): Page<T> {
  const hasMore = rows.length > limit;
  if (hasMore) rows.length = limit;
  return { items: rows.map(itemOf), hasMore };
}
