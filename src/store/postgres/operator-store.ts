import type { SQL } from "bun";
import { orderNotFound, petNotFound } from "../../domain/rejections.ts";
import { type Rejection } from "../../api/errors.ts";
import { INT64_MAX } from "../../api/json.ts";
import type { OrderUpdate, Pet } from "../../domain/resources.ts";
import type { Attribution } from "../../domain/audit.ts";
import {
  applyPetChange,
  type CorrectionRejection,
  type OrderQuery,
  orderUpdated,
  type OrderWithKey,
  type PetChange,
  petDeleted,
  petHasOrders,
  petOrdered,
  petUpdated,
} from "../../domain/corrections.ts";
import type { OperatorStore, Page } from "../../domain/ports.ts";
import {
  ORDER_WITH_KEY_COLUMNS,
  orderWithKeyOf,
  type OrderWithKeyRow,
  pageOf,
  PET_COLUMNS,
  petOf,
  type PetRow,
} from "../rows.ts";
import { insertAudit } from "./audit.ts";
import { finishOrder, STATUS_OF_KEY } from "./orders.ts";
import type { Pools } from "./connections/pools.ts";

const SELECT = `SELECT ${ORDER_WITH_KEY_COLUMNS} FROM orders`;

/**
 * Pages of the orders of all keys, newest first. The parameters are the identifier to continue before, the limit, and
 * the filters. Each order leaves PostgreSQL the index that begins with the filters only; see PageQueries. The further
 * filters of a pet's orders are CASE: with OR, PostgreSQL expects so few rows that it sorts all orders of the pet.
 */
export const ALL_ORDER_PAGES = {
  all: `${SELECT} WHERE id < $1 ORDER BY id DESC LIMIT $2`,
  byStatus: `${SELECT} WHERE (status, id) < ($3, $1) AND status >= $3 ORDER BY status DESC, id DESC LIMIT $2`,
  byKey: `${SELECT} WHERE (key_id, id) < ($3, $1) AND key_id >= $3 ORDER BY key_id DESC, id DESC LIMIT $2`,
  byKeyAndStatus: `${SELECT} WHERE key_id = $3 AND (${STATUS_OF_KEY}, id) < ($4, $1) AND ${STATUS_OF_KEY} >= $4
    ORDER BY ${STATUS_OF_KEY} DESC, id DESC LIMIT $2`,
  byPet: `${SELECT} WHERE (pet_id, id) < ($3, $1) AND pet_id >= $3
    AND CASE WHEN $4::int8 IS NULL THEN true ELSE key_id = $4 END
    AND CASE WHEN $5::text IS NULL THEN true ELSE status = $5 END
    ORDER BY pet_id DESC, id DESC LIMIT $2`,
} as const;

export class PostgresOperatorStore implements OperatorStore {
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
      sql.unsafe<OrderWithKeyRow[]>(`${SELECT} WHERE id = $1`, [id]),
    );
    return row && orderWithKeyOf(row);
  }

  updateOrder(id: bigint, status: OrderUpdate["status"], by: Attribution) {
    return this.pools.writes.transaction((tx) => updateOrder(tx, { id, status, by }));
  }

  updatePet(id: bigint, change: PetChange, by: Attribution) {
    return this.pools.writes.transaction((tx) => updatePet(tx, { id, change, by }));
  }

  deletePet(id: bigint, by: Attribution) {
    return this.pools.writes.transaction((tx) => deletePet(tx, id, by));
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

async function updateOrder(
  tx: SQL,
  { id, status, by }: { id: bigint; status: OrderUpdate["status"]; by: Attribution },
): Promise<OrderWithKey | Rejection<"order_not_found" | "order_closed">> {
  const [row] = await tx.unsafe<OrderWithKeyRow[]>(`${SELECT} WHERE id = $1 FOR UPDATE`, [id]);
  if (row === undefined) return orderNotFound(id);
  const closed = await finishOrder(tx, row, status);
  if (closed !== undefined) return closed;
  await insertAudit(tx, orderUpdated(id, status, by));
  return orderWithKeyOf({ ...row, status });
}

async function updatePet(
  tx: SQL,
  { id, change, by }: { id: bigint; change: PetChange; by: Attribution },
): Promise<Pet | Rejection<"pet_not_found"> | CorrectionRejection<"pet_ordered">> {
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
): Promise<Pet | Rejection<"pet_not_found"> | CorrectionRejection<"pet_has_orders">> {
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
  const [row] = await tx.unsafe<PetRow[]>(`SELECT ${PET_COLUMNS} FROM pets WHERE id = $1 FOR UPDATE`, [id]);
  return row && petOf(row);
}
