import type { SQL } from "bun";
import { orderClosed, orderNotFound, petNotAvailable, petNotFound } from "../../domain/rejections.ts";
import { type Rejection } from "../../api/errors.ts";
import {
  encodeOrder,
  type Order,
  type OrderStatus,
  type OrderUpdate,
  type PetStatus,
} from "../../domain/resources.ts";
import { canBeOrdered, STATUS_AFTER, STATUS_WHEN_ORDERED } from "../../domain/orders.ts";
import type { IdempotentRequest, OrderPlacement, Page, PageQuery, WriteResult } from "../../domain/ports.ts";
import { ORDER_COLUMNS, orderOf, type OrderRow } from "../rows.ts";
import { nextIdLock } from "./advisory-locks.ts";
import { IdempotencyRecords } from "./idempotency-records.ts";
import { type PageQueries, PageReader } from "./page-query.ts";
import type { Pools } from "./connections/pools.ts";

const SELECT = `SELECT ${ORDER_COLUMNS} FROM orders`;
/** The collation belongs to orders_by_key_and_status alone, so that orders_by_status does not serve the order. */
export const STATUS_OF_KEY = `status COLLATE "C"`;
export const ORDER_PAGES: PageQueries = {
  all: `${SELECT} WHERE (key_id, id) > ($3, $1) AND key_id <= $3 ORDER BY key_id, id LIMIT $2`,
  byStatus: `${SELECT} WHERE key_id = $3 AND (${STATUS_OF_KEY}, id) > ($4, $1) AND ${STATUS_OF_KEY} <= $4
    ORDER BY ${STATUS_OF_KEY}, id LIMIT $2`,
};
const SELECT_ONE = `${SELECT} WHERE id = $1 AND key_id = $2`;

export class Orders {
  readonly #pages: PageReader<OrderRow, Order, [number]>;
  readonly #records: IdempotencyRecords;

  constructor(private readonly pools: Pools) {
    this.#pages = new PageReader(pools.reads, ORDER_PAGES, orderOf);
    this.#records = new IdempotencyRecords("placeOrder", pools.writes);
  }

  list(keyId: number, query: PageQuery<OrderStatus>): Promise<Page<Order>> {
    return this.#pages.read(query, keyId);
  }

  async get(keyId: number, id: bigint): Promise<Order | undefined> {
    const [row] = await this.pools.reads.query((sql) => sql.unsafe<OrderRow[]>(SELECT_ONE, [id, keyId]));
    return row && orderOf(row);
  }

  async place(placement: OrderPlacement, at: number, request: IdempotentRequest | undefined) {
    const write = { at, request };
    const result = await this.pools.writes.transaction(async (tx) => {
      const earlier = (await this.#records.lockAndFind(tx, [write])).get(write);
      if (earlier !== undefined) return earlier;
      const result = await placeOrder(tx, placement, at);
      if (!("code" in result)) await this.#records.save(tx, [[write, result]]);
      return result;
    });
    if (request !== undefined) this.#records.purge([write]);
    return result;
  }

  async update(keyId: number, id: bigint, status: OrderUpdate["status"]) {
    return this.pools.writes.transaction((tx) => updateOrder(tx, { keyId, id, status }));
  }
}

const INSERT = `
  WITH ${nextIdLock("orders")}
  INSERT INTO orders (key_id, pet_id, status, created_at) SELECT $1, $2, 'placed', $3 FROM next_id_lock RETURNING id`;

/** Takes its locks in the same order as updateOrder (order, pet, next identifier), so that they cannot deadlock. */
async function placeOrder(
  tx: SQL,
  { keyId, petId }: OrderPlacement,
  at: number,
): Promise<WriteResult | Rejection<"pet_not_found" | "pet_not_available">> {
  const [pet] = await tx<{ status: PetStatus | null }[]>`
    SELECT status FROM pets WHERE id = ${petId} FOR NO KEY UPDATE`;
  if (pet === undefined) return petNotFound(petId);
  const status = pet.status ?? undefined;
  if (!canBeOrdered(status)) return petNotAvailable(petId, status);
  await tx`UPDATE pets SET status = ${STATUS_WHEN_ORDERED} WHERE id = ${petId}`;
  const [row] = await tx.unsafe<[{ id: bigint }]>(INSERT, [keyId, petId, at]);
  const order = orderOf({ id: row.id, petId, status: "placed", createdAt: BigInt(at) });
  return { id: order.id, body: encodeOrder(order), replayed: false };
}

async function updateOrder(
  tx: SQL,
  { keyId, id, status }: { keyId: number; id: bigint; status: OrderUpdate["status"] },
): Promise<Order | Rejection<"order_not_found" | "order_closed">> {
  const [row] = await tx.unsafe<OrderRow[]>(`${SELECT_ONE} FOR UPDATE`, [id, keyId]);
  if (row === undefined) return orderNotFound(id);
  return (await finishOrder(tx, row, status)) ?? orderOf({ ...row, status });
}

/** Completes or cancels an order whose row is locked, and makes its pet sold or available. */
export async function finishOrder(
  tx: SQL,
  { id, petId, status }: OrderRow,
  newStatus: OrderUpdate["status"],
): Promise<Rejection<"order_closed"> | undefined> {
  if (status !== "placed") return orderClosed(id, status);
  await tx`UPDATE orders SET status = ${newStatus} WHERE id = ${id}`;
  await tx`UPDATE pets SET status = ${STATUS_AFTER[newStatus]} WHERE id = ${petId}`;
  return undefined;
}
