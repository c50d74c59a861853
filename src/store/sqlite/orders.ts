import type { Rejection } from "../../api/errors.ts";
import { INT64_MAX } from "../../api/json.ts";
import type { Attribution, NewAuditEntry } from "../../domain/audit.ts";
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
  type NewPet,
  type Order,
  orderClosed,
  orderNotFound,
  type OrderStatus,
  type OrderUpdate,
  type Pet,
  petNotFound,
  STATUS_AFTER,
} from "../../domain/resources.ts";
import type { CorrectionStore, OrderPlacement, Page, PageQuery } from "../../domain/ports.ts";
import {
  ORDER_COLUMNS,
  ORDER_WITH_KEY_COLUMNS,
  orderOf,
  type OrderRow,
  orderWithKeyOf,
  type OrderWithKeyRow,
  pageOf,
} from "../rows.ts";
import { insertAudit } from "./audit.ts";
import type { Connection } from "./connection.ts";
import { AFTER, type PetRevision, type Pets } from "./pets.ts";

const SELECT = `SELECT ${ORDER_WITH_KEY_COLUMNS} FROM orders WHERE`;
const SELECT_OF_KEY = `SELECT ${ORDER_COLUMNS} FROM orders WHERE`;
const SELECT_PAGE = `${SELECT_OF_KEY} key_id = ? AND ${AFTER}`;
const SELECT_PAGE_BY_STATUS = `${SELECT_OF_KEY} key_id = ? AND status = ? AND ${AFTER}`;
const SELECT_ONE = `${SELECT_OF_KEY} id = ? AND key_id = ?`;

export class Orders {
  constructor(private readonly connection: Connection) {}

  list(keyId: number, { after = 0n, status, limit }: PageQuery<OrderStatus>): Page<Order> {
    const rows =
      status === undefined
        ? this.connection.all<OrderRow>(SELECT_PAGE, keyId, after, limit + 1)
        : this.connection.all<OrderRow>(SELECT_PAGE_BY_STATUS, keyId, status, after, limit + 1);
    return pageOf(rows, limit, orderOf);
  }

  /** Of every key, newest first. */
  listAll({ petId, keyId, status, before = INT64_MAX, limit }: OrderQuery): Page<OrderWithKey> {
    // A pet has few orders, so they are found by the pet: the plus keeps SQLite from using another index.
    const plus = petId === undefined ? "" : "+";
    const filters = [
      ["pet_id", petId],
      [`${plus}key_id`, keyId],
      [`${plus}status`, status],
    ] as const;
    const given = filters.flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]));
    const conditions = given.map(({ column }) => `${column} = ? AND `).join("");
    const rows = this.connection.all<OrderWithKeyRow>(
      `${SELECT} ${conditions}id < ? ORDER BY id DESC LIMIT +?`,
      ...given.map(({ value }) => value),
      before,
      limit + 1,
    );
    return pageOf(rows, limit, orderWithKeyOf);
  }

  get(keyId: number, id: bigint): Order | undefined {
    const row = this.connection.get<OrderRow>(SELECT_ONE, id, keyId);
    return row && orderOf(row);
  }

  /** Of any key. */
  find(id: bigint): OrderWithKey | undefined {
    const row = this.connection.get<OrderWithKeyRow>(`${SELECT} id = ?`, id);
    return row && orderWithKeyOf(row);
  }

  insert({ keyId, petId }: OrderPlacement, at: number): Order {
    const sql = "INSERT INTO orders (key_id, pet_id, status, created_at) VALUES (?, ?, ?, ?)";
    const { lastInsertRowid } = this.connection.run(sql, keyId, petId, "placed", at);
    return orderOf({ id: BigInt(lastInsertRowid), petId, status: "placed", createdAt: BigInt(at) });
  }

  setStatus(id: bigint, status: OrderStatus): void {
    this.connection.run("UPDATE orders SET status = ? WHERE id = ?", status, id);
  }

  /** The identifier of the order that a pet is reserved for. */
  placedFor(petId: bigint): bigint | undefined {
    const sql = "SELECT id FROM orders WHERE pet_id = ? AND status = 'placed'";
    return this.connection.get<{ id: bigint }>(sql, petId)?.id;
  }

  /** The identifier of the last order for a pet. */
  latestFor(petId: bigint): bigint | undefined {
    const sql = "SELECT id FROM orders WHERE pet_id = ? ORDER BY id DESC LIMIT 1";
    return this.connection.get<{ id: bigint }>(sql, petId)?.id;
  }
}

interface CorrectionStoreOptions {
  readonly connection: Connection;
  readonly pets: Pets;
  readonly orders: Orders;
  readonly petRevision: PetRevision;
  /** Runs the work in a transaction of the store. */
  readonly submit: <T>(work: () => T) => Promise<T>;
}

/** The writes share transactions with those of the store. */
export class SqliteCorrectionStore implements CorrectionStore {
  constructor(private readonly options: CorrectionStoreOptions) {}

  listOrders(query: OrderQuery): Page<OrderWithKey> {
    return this.options.orders.listAll(query);
  }

  getOrder(id: bigint): OrderWithKey | undefined {
    return this.options.orders.find(id);
  }

  updateOrder(id: bigint, status: OrderUpdate["status"], by: Attribution) {
    const { orders, submit } = this.options;
    return submit((): OrderWithKey | Rejection<"order_not_found" | "order_closed"> => {
      const order = orders.find(id);
      if (order === undefined) return orderNotFound(id);
      const closed = finishOrder(order, status, this.options);
      if (closed !== undefined) return closed;
      this.#record(orderUpdated(id, status, by));
      return { ...order, status };
    });
  }

  createPet(pet: NewPet, by: Attribution): Promise<Pet> {
    const { pets, submit } = this.options;
    return submit(() => {
      const created = { ...pet, id: pets.insert(pet) };
      this.#record(petCreated(created, by));
      return created;
    });
  }

  updatePet(id: bigint, change: PetChange, by: Attribution) {
    const { pets, orders, submit } = this.options;
    return submit((): Pet | Rejection<"pet_not_found" | "pet_ordered"> => {
      const before = pets.get(id);
      if (before === undefined) return petNotFound(id);
      const after = applyPetChange(before, change);
      const entry = petUpdated(before, after, by);
      if (entry === undefined) return before;
      const placed = after.status === before.status ? undefined : orders.placedFor(id);
      if (placed !== undefined) return petOrdered(id, placed);
      pets.update(after);
      this.#record(entry);
      return after;
    });
  }

  deletePet(id: bigint, by: Attribution) {
    const { pets, orders, submit } = this.options;
    return submit((): Pet | Rejection<"pet_not_found" | "pet_has_orders"> => {
      const pet = pets.get(id);
      if (pet === undefined) return petNotFound(id);
      const latest = orders.latestFor(id);
      if (latest !== undefined) return petHasOrders(id, latest);
      pets.delete(id);
      this.#record(petDeleted(pet, by));
      return pet;
    });
  }

  #record(entry: NewAuditEntry): void {
    this.options.petRevision.increment();
    insertAudit(this.options.connection, entry);
  }
}

/** Completes or cancels an order and makes its pet sold or available. Called in a transaction. */
export function finishOrder(
  order: Order,
  status: OrderUpdate["status"],
  { pets, orders }: Pick<CorrectionStoreOptions, "pets" | "orders">,
): Rejection<"order_closed"> | undefined {
  if (order.status !== "placed") return orderClosed(order.id, order.status);
  orders.setStatus(order.id, status);
  pets.setStatus(order.petId, STATUS_AFTER[status]);
  return undefined;
}
