import type { Order, OrderStatus, Pet, PetStatus } from "../contract/resources.ts";
import type { Page } from "../domain/ports.ts";

/** Rows as both engines give them. The quotes keep capital letters, which PostgreSQL would make small. */
export interface PetRow {
  readonly id: bigint;
  readonly name: string;
  readonly categoryId: bigint;
  readonly status: PetStatus | null;
}

export const PET_COLUMNS = `id, name, category_id AS "categoryId", status`;

/** An absent status is absent, not null. A row that has one is a pet as it is, and is not made again. */
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

/** The rows are one more than asked for, where there are: that one tells whether there is more. */
export function pageOf<Row, T>(rows: Row[], limit: number, entry: (row: Row) => T): Page<T> {
  const more = rows.length > limit;
  if (more) rows.length = limit;
  return { items: rows.map(entry), more };
}
