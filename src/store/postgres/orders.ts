import type { SQL } from "bun";
import {
  orderClosed,
  orderNotFound,
  petNotAvailable,
  petNotFound,
  type Rejection,
} from "../../contract/errors.ts";
import { encodeOrder, type Order, type OrderUpdate, type PetStatus } from "../../contract/resources.ts";
import { canBeOrdered, STATUS_AFTER, STATUS_WHEN_ORDERED } from "../../domain/orders.ts";
import type { WriteResult } from "../../domain/ports.ts";
import { ORDER_COLUMNS, orderOf, type OrderRow } from "../rows.ts";
import { turnFor } from "./advisory-locks.ts";

const INSERT = `
  WITH ${turnFor("orders")}
  INSERT INTO orders (pet_id, status, created_at) SELECT $1, 'placed', $2 FROM turn RETURNING id`;

/**
 * Both are to be called in a transaction, and lock in one order (order, pet, turn to take an identifier), so that
 * two of them never wait for each other.
 */
export async function placeOrder(
  tx: SQL,
  petId: bigint,
  at: number,
): Promise<WriteResult | Rejection<"pet_not_found" | "pet_not_available">> {
  const [pet] = await tx<{ status: PetStatus | null }[]>`
    SELECT status FROM pets WHERE id = ${petId} FOR NO KEY UPDATE`;
  if (pet === undefined) return petNotFound(petId);
  const status = pet.status ?? undefined;
  if (!canBeOrdered(status)) return petNotAvailable(petId, status);
  await tx`UPDATE pets SET status = ${STATUS_WHEN_ORDERED} WHERE id = ${petId}`;
  const [row] = await tx.unsafe<[{ id: bigint }]>(INSERT, [petId, at]);
  const order = orderOf({ id: row.id, petId, status: "placed", createdAt: BigInt(at) });
  return { id: order.id, body: encodeOrder(order), replayed: false };
}

export async function updateOrder(
  tx: SQL,
  id: bigint,
  status: OrderUpdate["status"],
): Promise<Order | Rejection<"order_not_found" | "order_closed">> {
  const [row] = await tx.unsafe<OrderRow[]>(`SELECT ${ORDER_COLUMNS} FROM orders WHERE id = $1 FOR UPDATE`, [
    id,
  ]);
  if (row === undefined) return orderNotFound(id);
  if (row.status !== "placed") return orderClosed(id, row.status);
  await tx`UPDATE orders SET status = ${status} WHERE id = ${id}`;
  await tx`UPDATE pets SET status = ${STATUS_AFTER[status]} WHERE id = ${row.petId}`;
  return orderOf({ ...row, status });
}
