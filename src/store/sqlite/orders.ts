import type { SQLQueryBindings, Statement } from "bun:sqlite";
import type { Rejection } from "../../api/errors.ts";
import { INT64_MAX } from "../../api/json.ts";
import type { Attribution, NewAuditEntry } from "../../domain/audit.ts";
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
import { STATUS_AFTER } from "../../domain/orders.ts";
import type { OperatorStore, OrderPlacement, Page, PageQuery } from "../../domain/ports.ts";
import { orderClosed, orderNotFound, petNotFound } from "../../domain/rejections.ts";
import type { Order, OrderStatus, OrderUpdate, Pet } from "../../domain/resources.ts";
import {
  ORDER_COLUMNS,
  ORDER_WITH_KEY_COLUMNS,
  orderOf,
  type OrderRow,
  orderWithKeyOf,
  type OrderWithKeyRow,
  pageOf,
} from "../rows.ts";
import { AuditEntries } from "./audit.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./errors.ts";
import { PageReader, type PetRevision, type Pets } from "./pets.ts";

const SELECT = `SELECT ${ORDER_COLUMNS} FROM orders`;

export class Orders {
  readonly #pages: PageReader<OrderRow, Order, [number]>;
  readonly #selectById: Statement<OrderRow, [bigint, number]>;
  readonly #insert: Statement<unknown, [number, bigint, OrderStatus, number]>;
  readonly #updateStatus: Statement<unknown, [OrderStatus, bigint]>;

  constructor(connection: Connection) {
    this.#pages = new PageReader(connection, { select: SELECT, scope: "key_id = ?", itemOf: orderOf });
    this.#selectById = connection.prepare(`${SELECT} WHERE id = ? AND key_id = ?`);
    this.#insert = connection.prepare(
      "INSERT INTO orders (key_id, pet_id, status, created_at) VALUES (?, ?, ?, ?)",
    );
    this.#updateStatus = connection.prepare("UPDATE orders SET status = ? WHERE id = ?");
  }

  list(keyId: number, query: PageQuery<OrderStatus>): Page<Order> {
    return this.#pages.read(query, keyId);
  }

  get(keyId: number, id: bigint): Order | undefined {
    const row = translateErrors(() => this.#selectById.get(id, keyId));
    return row === null ? undefined : orderOf(row);
  }

  insert({ keyId, petId }: OrderPlacement, at: number): Order {
    const { lastInsertRowid } = this.#insert.run(keyId, petId, "placed", at);
    return orderOf({ id: BigInt(lastInsertRowid), petId, status: "placed", createdAt: BigInt(at) });
  }

  setStatus(id: bigint, status: OrderStatus): void {
    this.#updateStatus.run(status, id);
  }
}

type Pages<Filters extends SQLQueryBindings[]> = Statement<OrderWithKeyRow, [...Filters, bigint, number]>;

/** Reads orders as operators do: of every key, newest first. For `LIMIT +?` see PageReader. */
class OrdersOfAllKeys {
  readonly #select: Pages<[]>;
  readonly #selectByStatus: Pages<[string]>;
  readonly #selectByKey: Pages<[number]>;
  readonly #selectByKeyAndStatus: Pages<[number, string]>;
  readonly #selectByPet: Pages<[bigint, number | null, string | null]>;
  readonly #selectById: Statement<OrderWithKeyRow, [bigint]>;
  readonly #selectPlaced: Statement<{ id: bigint }, [bigint]>;
  readonly #selectLatest: Statement<{ id: bigint }, [bigint]>;

  constructor(connection: Connection) {
    const select = `SELECT ${ORDER_WITH_KEY_COLUMNS} FROM orders WHERE`;
    const newestFirst = "id < ? ORDER BY id DESC LIMIT +?";
    this.#select = connection.prepare(`${select} ${newestFirst}`);
    this.#selectByStatus = connection.prepare(`${select} status = ? AND ${newestFirst}`);
    this.#selectByKey = connection.prepare(`${select} key_id = ? AND ${newestFirst}`);
    this.#selectByKeyAndStatus = connection.prepare(`${select} key_id = ? AND status = ? AND ${newestFirst}`);
    this.#selectByPet = connection.prepare(`${select} pet_id = ?1 AND (?2 IS NULL OR key_id = ?2)
      AND (?3 IS NULL OR status = ?3) AND id < ?4 ORDER BY id DESC LIMIT +?5`);
    this.#selectById = connection.prepare(`${select} id = ?`);
    this.#selectPlaced = connection.prepare("SELECT id FROM orders WHERE pet_id = ? AND status = 'placed'");
    this.#selectLatest = connection.prepare(
      "SELECT id FROM orders WHERE pet_id = ? ORDER BY id DESC LIMIT 1",
    );
  }

  list(query: OrderQuery): Page<OrderWithKey> {
    return translateErrors(() => pageOf(this.#rows(query), query.limit, orderWithKeyOf));
  }

  #rows({ status, keyId, petId, before = INT64_MAX, limit }: OrderQuery): OrderWithKeyRow[] {
    const rows = limit + 1;
    if (petId !== undefined) {
      return this.#selectByPet.all(petId, keyId ?? null, status ?? null, before, rows);
    }
    if (keyId === undefined) {
      return status === undefined
        ? this.#select.all(before, rows)
        : this.#selectByStatus.all(status, before, rows);
    }
    return status === undefined
      ? this.#selectByKey.all(keyId, before, rows)
      : this.#selectByKeyAndStatus.all(keyId, status, before, rows);
  }

  get(id: bigint): OrderWithKey | undefined {
    const row = translateErrors(() => this.#selectById.get(id));
    return row === null ? undefined : orderWithKeyOf(row);
  }

  /** The identifier of the order that a pet is reserved for. */
  placedFor(petId: bigint): bigint | undefined {
    return this.#selectPlaced.get(petId)?.id;
  }

  /** The identifier of the last order for a pet. */
  latestFor(petId: bigint): bigint | undefined {
    return this.#selectLatest.get(petId)?.id;
  }
}

interface OperatorStoreOptions {
  readonly connection: Connection;
  readonly pets: Pets;
  readonly orders: Orders;
  readonly petRevision: PetRevision;
  /** Runs the work in a transaction of the store. */
  readonly submit: <T>(work: () => T) => Promise<T>;
}

/** The writes share transactions with those of the store. */
export class SqliteOperatorStore implements OperatorStore {
  readonly #options: OperatorStoreOptions;
  readonly #orders: OrdersOfAllKeys;
  readonly #audit: AuditEntries;

  constructor(options: OperatorStoreOptions) {
    const { connection } = options;
    this.#options = options;
    this.#orders = new OrdersOfAllKeys(connection);
    this.#audit = new AuditEntries(connection);
  }

  listOrders(query: OrderQuery): Page<OrderWithKey> {
    return this.#orders.list(query);
  }

  getOrder(id: bigint): OrderWithKey | undefined {
    return this.#orders.get(id);
  }

  updateOrder(id: bigint, status: OrderUpdate["status"], by: Attribution) {
    return this.#options.submit((): OrderWithKey | Rejection<"order_not_found" | "order_closed"> => {
      const order = this.#orders.get(id);
      if (order === undefined) return orderNotFound(id);
      const closed = finishOrder(order, status, this.#options);
      if (closed !== undefined) return closed;
      this.#record(orderUpdated(id, status, by));
      return { ...order, status };
    });
  }

  updatePet(id: bigint, change: PetChange, by: Attribution) {
    const { pets, submit } = this.#options;
    return submit((): Pet | Rejection<"pet_not_found"> | CorrectionRejection<"pet_ordered"> => {
      const before = pets.get(id);
      if (before === undefined) return petNotFound(id);
      const after = applyPetChange(before, change);
      const entry = petUpdated(before, after, by);
      if (entry === undefined) return before;
      const placed = after.status === before.status ? undefined : this.#orders.placedFor(id);
      if (placed !== undefined) return petOrdered(id, placed);
      pets.update(after);
      this.#record(entry);
      return after;
    });
  }

  deletePet(id: bigint, by: Attribution) {
    const { pets, submit } = this.#options;
    return submit((): Pet | Rejection<"pet_not_found"> | CorrectionRejection<"pet_has_orders"> => {
      const pet = pets.get(id);
      if (pet === undefined) return petNotFound(id);
      const latest = this.#orders.latestFor(id);
      if (latest !== undefined) return petHasOrders(id, latest);
      pets.delete(id);
      this.#record(petDeleted(pet, by));
      return pet;
    });
  }

  #record(entry: NewAuditEntry): void {
    this.#options.petRevision.increment();
    this.#audit.insert(entry);
  }
}

/** Completes or cancels an order and makes its pet sold or available. Called in a transaction. */
export function finishOrder(
  order: Order,
  status: OrderUpdate["status"],
  { pets, orders }: Pick<OperatorStoreOptions, "pets" | "orders">,
): Rejection<"order_closed"> | undefined {
  if (order.status !== "placed") return orderClosed(order.id, order.status);
  orders.setStatus(order.id, status);
  pets.setStatus(order.petId, STATUS_AFTER[status]);
  return undefined;
}
