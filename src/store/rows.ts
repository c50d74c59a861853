import type { Order, OrderStatus, Pet, PetStatus } from "../domain/resources.ts";
import type { OrderWithKey } from "../domain/corrections.ts";
import type { Page, PetQuery } from "../domain/ports.ts";

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

/** The identifiers that a query selects, from its cursor on. */
export function idsAfter({ ids = [], after }: PetQuery): readonly bigint[] {
  return after === undefined ? ids : ids.filter((id) => id > after);
}

/** Takes one row more than the limit where there is one: it shows that the page has a successor. */
export function pageOf<Row, T>(rows: Row[], limit: number, itemOf: (row: Row) => T): Page<T> {
  const hasMore = rows.length > limit;
  if (hasMore) rows.length = limit;
  return { items: rows.map(itemOf), hasMore };
}
