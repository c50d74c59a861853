import type { SQL } from "bun";
import type { Rejection } from "../../api/errors.ts";
import { INT64_MAX } from "../../api/json.ts";
import type { Attribution } from "../../domain/audit.ts";
import {
  applyPetChange,
  type OrderQuery,
  orderUpdated,
  type OrderWithKey,
  type PetChange,
  petCreated,
  petDeleted,
  petHasOrders,
  petOrdered,
  petUpdated,
} from "../../domain/corrections.ts";
import {
  canBeOrdered,
  encodeOrder,
  type NewPet,
  type Order,
  orderClosed,
  orderNotFound,
  type OrderStatus,
  type OrderUpdate,
  type Pet,
  petNotAvailable,
  petNotFound,
  type PetStatus,
  STATUS_AFTER,
  STATUS_WHEN_ORDERED,
} from "../../domain/resources.ts";
import type {
  CorrectionStore,
  IdempotentRequest,
  OrderPlacement,
  Page,
  PageQuery,
  WriteResult,
} from "../../domain/ports.ts";
import {
  ORDER_COLUMNS,
  ORDER_WITH_KEY_COLUMNS,
  orderOf,
  type OrderRow,
  orderWithKeyOf,
  type OrderWithKeyRow,
  pageOf,
  PET_COLUMNS,
  petOf,
  type PetRow,
} from "../rows.ts";
import { insertAudit } from "./audit.ts";
import { nextIdLock } from "./connection.ts";
import { IdempotencyRecords } from "./idempotency.ts";
import { INSERT_PETS, type PageQueries, PageReader } from "./pets.ts";
import type { Pools } from "./pool.ts";

const SELECT = `SELECT ${ORDER_COLUMNS} FROM orders`;
/** The collation belongs to orders_by_key_and_status alone, so that orders_by_status does not serve the order. */
const STATUS_OF_KEY = `status COLLATE "C"`;
export const ORDER_PAGES: PageQueries = {
  all: `${SELECT} WHERE (key_id, id) > ($3, $1) AND key_id <= $3 ORDER BY key_id, id LIMIT $2`,
  byStatus: `${SELECT} WHERE key_id = $3 AND (${STATUS_OF_KEY}, id) > ($4, $1) AND ${STATUS_OF_KEY} <= $4
    ORDER BY ${STATUS_OF_KEY}, id LIMIT $2`,
};
const LOCK = "FOR UPDATE NOWAIT";
const SELECT_ONE = `${SELECT} WHERE id = $1 AND key_id = $2`;

export class Orders {
  readonly #pages: PageReader<OrderRow, Order, [number]>;
  readonly #records: IdempotencyRecords;

  constructor(private readonly pools: Pools) {
    this.#pages = new PageReader(pools.reads, ORDER_PAGES, orderOf);
    this.#records = new IdempotencyRecords("placeOrder", pools.writes, pools.retentionNow);
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
    const result = await this.pools.rows.transaction(`pet ${placement.petId}`, async (tx) => {
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
    return this.pools.rows.transaction(`order ${id}`, (tx) => updateOrder(tx, { keyId, id, status }));
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
    SELECT status FROM pets WHERE id = ${petId} FOR NO KEY UPDATE NOWAIT`;
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
  const [row] = await tx.unsafe<OrderRow[]>(`${SELECT_ONE} ${LOCK}`, [id, keyId]);
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
  await tx`UPDATE pets SET status = ${STATUS_AFTER[newStatus]}
    WHERE id = (SELECT id FROM pets WHERE id = ${petId} FOR NO KEY UPDATE NOWAIT)`;
  return undefined;
}

const SELECT_WITH_KEY = `SELECT ${ORDER_WITH_KEY_COLUMNS} FROM orders`;

/**
 * Pages of the orders of all keys, newest first. The parameters are the identifier to continue before, the limit, and
 * the filters. Each order leaves PostgreSQL the index that begins with the filters only; see PageQueries. The further
 * filters of a pet's orders are CASE: with OR, PostgreSQL expects so few rows that it sorts all orders of the pet.
 */
export const ALL_ORDER_PAGES = {
  all: `${SELECT_WITH_KEY} WHERE id < $1 ORDER BY id DESC LIMIT $2`,
  byStatus: `${SELECT_WITH_KEY} WHERE (status, id) < ($3, $1) AND status >= $3 ORDER BY status DESC, id DESC LIMIT $2`,
  byKey: `${SELECT_WITH_KEY} WHERE (key_id, id) < ($3, $1) AND key_id >= $3 ORDER BY key_id DESC, id DESC LIMIT $2`,
  byKeyAndStatus: `${SELECT_WITH_KEY} WHERE key_id = $3 AND (${STATUS_OF_KEY}, id) < ($4, $1) AND ${STATUS_OF_KEY} >= $4
    ORDER BY ${STATUS_OF_KEY} DESC, id DESC LIMIT $2`,
  byPet: `${SELECT_WITH_KEY} WHERE (pet_id, id) < ($3, $1) AND pet_id >= $3
    AND CASE WHEN $4::int8 IS NULL THEN true ELSE key_id = $4 END
    AND CASE WHEN $5::text IS NULL THEN true ELSE status = $5 END
    ORDER BY pet_id DESC, id DESC LIMIT $2`,
} as const;

export class PostgresCorrectionStore implements CorrectionStore {
  constructor(private readonly pools: Pools) {}

  async listOrders(query: OrderQuery): Promise<Page<OrderWithKey>> {
    const { before = INT64_MAX, limit } = query;
    const [page, filters] = pageFor(query);
    const rows = await this.pools.reads.query((sql) =>
      sql.unsafe<OrderWithKeyRow[]>(page, [before, limit + 1, ...filters]),
    );
    return pageOf(rows, limit, orderWithKeyOf);
  }

  async getOrder(id: bigint): Promise<OrderWithKey | undefined> {
    const [row] = await this.pools.reads.query((sql) =>
      sql.unsafe<OrderWithKeyRow[]>(`${SELECT_WITH_KEY} WHERE id = $1`, [id]),
    );
    return row && orderWithKeyOf(row);
  }

  updateOrder(id: bigint, status: OrderUpdate["status"], by: Attribution) {
    return this.pools.rows.transaction(`order ${id}`, (tx) => updateOrderOfAnyKey(tx, { id, status, by }));
  }

  createPet(pet: NewPet, by: Attribution): Promise<Pet> {
    return this.pools.writes.transaction(async (tx) => {
      const { name, categoryId, status = null } = pet;
      const [row] = await tx.unsafe<{ id: bigint }[]>(INSERT_PETS, [[name], [categoryId], [status]]);
      const created = { ...pet, id: row?.id ?? 0n };
      await insertAudit(tx, petCreated(created, by));
      return created;
    });
  }

  updatePet(id: bigint, change: PetChange, by: Attribution) {
    return this.pools.rows.transaction(`pet ${id}`, (tx) => updatePet(tx, { id, change, by }));
  }

  deletePet(id: bigint, by: Attribution) {
    return this.pools.rows.transaction(`pet ${id}`, (tx) => deletePet(tx, id, by));
  }
}

function pageFor({ petId, keyId, status }: OrderQuery): [string, unknown[]] {
  if (petId !== undefined) return [ALL_ORDER_PAGES.byPet, [petId, keyId ?? null, status ?? null]];
  if (keyId === undefined) {
    return status === undefined ? [ALL_ORDER_PAGES.all, []] : [ALL_ORDER_PAGES.byStatus, [status]];
  }
  return status === undefined
    ? [ALL_ORDER_PAGES.byKey, [keyId]]
    : [ALL_ORDER_PAGES.byKeyAndStatus, [keyId, status]];
}

/*
 * Locks are taken in the order of placeOrder and updateOrder: order, pet. A pet is locked before its orders are read,
 * so an order that is placed at the same time is either seen or finds the pet as it is afterwards.
 */

async function updateOrderOfAnyKey(
  tx: SQL,
  { id, status, by }: { id: bigint; status: OrderUpdate["status"]; by: Attribution },
): Promise<OrderWithKey | Rejection<"order_not_found" | "order_closed">> {
  const [row] = await tx.unsafe<OrderWithKeyRow[]>(`${SELECT_WITH_KEY} WHERE id = $1 ${LOCK}`, [id]);
  if (row === undefined) return orderNotFound(id);
  const closed = await finishOrder(tx, row, status);
  if (closed !== undefined) return closed;
  await insertAudit(tx, orderUpdated(id, status, by));
  return orderWithKeyOf({ ...row, status });
}

async function updatePet(
  tx: SQL,
  { id, change, by }: { id: bigint; change: PetChange; by: Attribution },
): Promise<Pet | Rejection<"pet_not_found" | "pet_ordered">> {
  const before = await lockPet(tx, id);
  if (before === undefined) return petNotFound(id);
  const after = applyPetChange(before, change);
  const entry = petUpdated(before, after, by);
  if (entry === undefined) return before;
  if (after.status !== before.status) {
    const [placed] = await tx<{ id: bigint }[]>`
      SELECT id FROM orders WHERE pet_id = ${id} AND status = 'placed'`;
    if (placed !== undefined) return petOrdered(id, placed.id);
  }
  const { name, categoryId, status = null } = after;
  await tx`UPDATE pets SET name = ${name}, category_id = ${categoryId}, status = ${status} WHERE id = ${id}`;
  await insertAudit(tx, entry);
  return after;
}

async function deletePet(
  tx: SQL,
  id: bigint,
  by: Attribution,
): Promise<Pet | Rejection<"pet_not_found" | "pet_has_orders">> {
  const pet = await lockPet(tx, id);
  if (pet === undefined) return petNotFound(id);
  const [latest] = await tx<{ id: bigint }[]>`
    SELECT id FROM orders WHERE pet_id = ${id} ORDER BY pet_id DESC, id DESC LIMIT 1`;
  if (latest !== undefined) return petHasOrders(id, latest.id);
  await tx`DELETE FROM pets WHERE id = ${id}`;
  await insertAudit(tx, petDeleted(pet, by));
  return pet;
}

async function lockPet(tx: SQL, id: bigint): Promise<Pet | undefined> {
  const [row] = await tx.unsafe<PetRow[]>(`SELECT ${PET_COLUMNS} FROM pets WHERE id = $1 ${LOCK}`, [id]);
  return row && petOf(row);
}
