import type { SQL } from "bun";
import {
  orderClosed,
  orderNotFound,
  petNotAvailable,
  petNotFound,
  type Rejection,
} from "../../contract/errors.ts";
import {
  encodeOrder,
  type Order,
  type OrderStatus,
  type OrderUpdate,
  type PetStatus,
} from "../../contract/resources.ts";
import { canBeOrdered, STATUS_AFTER, STATUS_WHEN_ORDERED } from "../../domain/orders.ts";
import type { IdempotentRequest, Page, PageQuery, WriteResult } from "../../domain/ports.ts";
import { ORDER_COLUMNS, orderOf, type OrderRow } from "../rows.ts";
import { nextIdLock } from "./advisory-locks.ts";
import { IdempotencyRecords } from "./idempotency-records.ts";
import { PageReader } from "./page-query.ts";
import type { Pools } from "./pools.ts";

export const ORDERS = { table: "orders", columns: ORDER_COLUMNS };

export class Orders {
  readonly #pages: PageReader<OrderRow, Order>;
  readonly #records: IdempotencyRecords;

  constructor(private readonly pools: Pools) {
    this.#pages = new PageReader(pools.reads, ORDERS, orderOf);
    this.#records = new IdempotencyRecords("placeOrder", pools.writes);
  }

  list(query: PageQuery<OrderStatus>): Promise<Page<Order>> {
    return this.#pages.read(query);
  }

  async place(petId: bigint, at: number, request: IdempotentRequest | undefined) {
    const write = { at, request };
    const result = await this.pools.writes.transaction(async (tx) => {
      const earlier = (await this.#records.lockAndFind(tx, [write])).get(write);
      if (earlier !== undefined) return earlier;
      const result = await placeOrder(tx, petId, at);
      if (!("code" in result)) await this.#records.save(tx, [[write, result]]);
      return result;
    });
    if (request !== undefined) this.#records.purge([write]);
    return result;
  }

  async update(id: bigint, status: OrderUpdate["status"]) {
    return this.pools.writes.transaction((tx) => updateOrder(tx, id, status));
  }
}

const INSERT = `
  WITH ${nextIdLock("orders")}
  INSERT INTO orders (pet_id, status, created_at) SELECT $1, 'placed', $2 FROM next_id_lock RETURNING id`;

/** Takes its locks in the same order as updateOrder (order, pet, next identifier), so that they cannot deadlock. */
async function placeOrder(
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

async function updateOrder(
  tx: SQL,
  id: bigint,
  status: OrderUpdate["status"],
): Promise<Order | Rejection<"order_not_found" | "order_closed">> {
  const select = `SELECT ${ORDER_COLUMNS} FROM orders WHERE id = $1 FOR UPDATE`;
  const [row] = await tx.unsafe<OrderRow[]>(select, [id]);
  if (row === undefined) return orderNotFound(id);
  if (row.status !== "placed") return orderClosed(id, row.status);
  await tx`UPDATE orders SET status = ${status} WHERE id = ${id}`;
  await tx`UPDATE pets SET status = ${STATUS_AFTER[status]} WHERE id = ${row.petId}`;
  return orderOf({ ...row, status });
}
