import type { OperatorOrder } from "../domain/corrections.ts";
import type { PetQuery } from "../domain/ports.ts";
import type { Order, OrderStatus, Pet, PetStatus } from "../domain/resources.ts";

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

export function petOf({ id, name, categoryId, status }: PetRow): Pet {
  return status === null ? { id, name, categoryId } : { id, name, categoryId, status };
}

export interface OrderRow {
  readonly id: bigint;
  readonly petId: bigint;
  readonly status: OrderStatus;
  readonly createdAt: bigint;
}

export const ORDER_COLUMNS = `id, pet_id AS "petId", status, created_at AS "createdAt"`;

export function orderOf({ id, petId, status, createdAt }: OrderRow): Order {
  return { id, petId, status, createdAt: timeOf(createdAt) };
}

function timeOf(ms: bigint): string {
  return new Date(Number(ms)).toISOString();
}

/** The key is null where an earlier release recorded none, and so is the time at which it closed the order. */
export type OperatorOrderRow = OrderRow & { readonly keyId: bigint | null; readonly closedAt: bigint | null };

export const OPERATOR_ORDER_COLUMNS = `${ORDER_COLUMNS}, key_id AS "keyId", closed_at AS "closedAt"`;

export function operatorOrderOf(row: OperatorOrderRow): OperatorOrder {
  const { keyId, closedAt } = row;
  return {
    ...orderOf(row),
    keyId: keyId === null ? null : Number(keyId),
    closedAt: closedAt === null ? null : timeOf(closedAt),
  };
}

/** The identifiers that a query selects, from its cursor on. */
export function idsAfter({ ids = [], after }: PetQuery): readonly bigint[] {
  return after === undefined ? ids : ids.filter((id) => id > after);
}
