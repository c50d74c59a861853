import type { Rejection } from "../api/errors.ts";
import type { Attribution, NewAuditEntry } from "../domain/audit.ts";
import {
  applyPetChange,
  type OperatorOrder,
  type OrderQuery,
  orderUpdated,
  type PetChange,
  petCreated,
  petDeleted,
  petHasOrders,
  petOrdered,
  petUpdated,
} from "../domain/corrections.ts";
import type {
  CorrectionStore,
  OrderClosing,
  OrderPlacement,
  Page,
  PageQuery,
  PetQuery,
  Store,
  WriteResult,
} from "../domain/ports.ts";
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
} from "../domain/resources.ts";
import type { Awaitable } from "../event-loop.ts";
import { addAudit } from "./audit.ts";
import { orderPage, orderPagesOfKey, petPage } from "./pages.ts";
import {
  OPERATOR_ORDER_COLUMNS,
  operatorOrderOf,
  type OperatorOrderRow,
  ORDER_COLUMNS,
  orderOf,
  type OrderRow,
  PET_COLUMNS,
  petOf,
  type PetRow,
} from "./rows.ts";
import {
  type Dialect,
  readFirst,
  readPage,
  requireRow,
  rowsOf,
  type SqlDatabase,
  type Statement,
  type Statements,
  type Steps,
} from "./statements.ts";

/*
 * The reads and writes of clients and operators, on both databases. Locks are taken in one order (order,
 * pet, next identifier), so that they cannot deadlock. A pet is locked before its orders are read, so an order that is
 * placed at the same time is either seen or finds the pet as it is afterwards.
 */

const SELECT_ORDER = `SELECT ${ORDER_COLUMNS} FROM orders WHERE id = ? AND key_id = ?`;
const SELECT_ORDER_OF_ANY_KEY = `SELECT ${OPERATOR_ORDER_COLUMNS} FROM orders WHERE id = ?`;
const SELECT_PET = `SELECT ${PET_COLUMNS} FROM pets WHERE id = ?`;

/** Creates an order and makes its pet pending. */
export function* placeOrder(
  { keyId, petId }: OrderPlacement,
  at: number,
  dialect: Dialect,
): Steps<WriteResult | Rejection<"pet_not_found" | "pet_not_available">> {
  const pet = yield* lockPet(petId, "NO KEY UPDATE");
  if (pet === undefined) return petNotFound(petId);
  if (!canBeOrdered(pet.status)) return petNotAvailable(petId, pet.status);
  yield* setPetStatus(petId, STATUS_WHEN_ORDERED);
  const insert = dialect.insert("orders", ["key_id", "pet_id", "status", "created_at"]);
  const id = yield* insertedId(insert, keyId, petId, "placed", at);
  const order = orderOf({ id, petId, status: "placed", createdAt: BigInt(at) });
  return { id, body: encodeOrder(order), replayed: false };
}

/** Completes or cancels an order of a key. */
export function* closeOrder(
  { keyId, id, status }: OrderClosing,
  at: number,
): Steps<Order | Rejection<"order_not_found" | "order_closed">> {
  const [row] = yield* rowsOf<OrderRow>(`${SELECT_ORDER} FOR UPDATE NOWAIT`, id, keyId);
  if (row === undefined) return orderNotFound(id);
  return (yield* finishOrder(row, status, at)) ?? orderOf({ ...row, status });
}

/** Makes the pet of an order, whose row is locked, sold or available. */
function* finishOrder(
  { id, petId, status }: OrderRow,
  newStatus: OrderUpdate["status"],
  at: number,
): Steps<Rejection<"order_closed"> | undefined> {
  if (status !== "placed") return orderClosed(id, status);
  yield* rowsOf("UPDATE orders SET status = ?, closed_at = ? WHERE id = ?", newStatus, at, id);
  yield* setPetStatus(petId, STATUS_AFTER[newStatus]);
  return undefined;
}

function* lockPet(id: bigint, mode: "UPDATE" | "NO KEY UPDATE"): Steps<Pet | undefined> {
  const [row] = yield* rowsOf<PetRow>(`${SELECT_PET} FOR ${mode} NOWAIT`, id);
  return row && petOf(row);
}

function* setPetStatus(id: bigint, status: PetStatus): Steps<void> {
  const locked = "SELECT id FROM pets WHERE id = ? FOR NO KEY UPDATE NOWAIT";
  yield* rowsOf(`UPDATE pets SET status = ? WHERE id = (${locked})`, status, id);
}

function* insertedId(insert: string, ...values: Statement["values"]): Steps<bigint> {
  const [row] = yield* rowsOf<{ id: bigint }>(insert, ...values);
  return requireRow(row).id;
}

/** How both databases read pets and orders. */
export class SqlReadStore implements Pick<Store, "listPets" | "getPet" | "listOrders" | "getOrder"> {
  readonly #orderPages: ReturnType<typeof orderPagesOfKey>;

  constructor(protected readonly database: SqlDatabase) {
    this.#orderPages = orderPagesOfKey(database.dialect);
  }

  listPets(query: PetQuery): Awaitable<Page<Pet>> {
    const statement = petPage(query, this.database.dialect);
    return this.database.read(() => readPage(statement, query.limit, petOf));
  }

  getPet(id: bigint): Awaitable<Pet | undefined> {
    return this.database.read(() => readFirst(petOf, SELECT_PET, id));
  }

  listOrders(keyId: number, { status, after = 0n, limit }: PageQuery<OrderStatus>): Awaitable<Page<Order>> {
    const { all, byStatus } = this.#orderPages;
    const statement =
      status === undefined
        ? { sql: all, values: [keyId, after, limit + 1] }
        : { sql: byStatus, values: [keyId, status, after, limit + 1] };
    return this.database.read(() => readPage(statement, limit, orderOf));
  }

  getOrder(keyId: number, id: bigint): Awaitable<Order | undefined> {
    return this.database.read(() => readFirst(orderOf, SELECT_ORDER, id, keyId));
  }
}

interface CorrectionDatabase extends Omit<SqlDatabase, "write"> {
  /** A transaction that waits for other writes to the row, and makes none of them wait for another row. */
  write<T>(row: string, statements: Statements<T>): Promise<T>;
  /** Called in the transaction of a change. */
  petsChanged?(): Steps<void>;
}

export class SqlCorrectionStore implements CorrectionStore {
  constructor(private readonly database: CorrectionDatabase) {}

  listOrders(query: OrderQuery): Awaitable<Page<OperatorOrder>> {
    const page = orderPage(query, this.database.dialect);
    return this.database.read(() => readPage(page, query.limit, operatorOrderOf));
  }

  getOrder(id: bigint): Awaitable<OperatorOrder | undefined> {
    return this.database.read(() => readFirst(operatorOrderOf, SELECT_ORDER_OF_ANY_KEY, id));
  }

  updateOrder(id: bigint, status: OrderUpdate["status"], by: Attribution) {
    return this.#change(`order ${id}`, function* (record): Steps<
      OperatorOrder | Rejection<"order_not_found" | "order_closed">
    > {
      const [row] = yield* rowsOf<OperatorOrderRow>(`${SELECT_ORDER_OF_ANY_KEY} FOR UPDATE NOWAIT`, id);
      if (row === undefined) return orderNotFound(id);
      const rejection = yield* finishOrder(row, status, by.at);
      if (rejection !== undefined) return rejection;
      yield* record(orderUpdated(id, status, by));
      return operatorOrderOf({ ...row, status, closedAt: BigInt(by.at) });
    });
  }

  createPet(pet: NewPet, by: Attribution): Promise<Pet> {
    const insert = this.database.dialect.insert("pets", ["name", "category_id", "status"]);
    return this.#change("next pet", function* (record) {
      const { name, categoryId, status = null } = pet;
      const created = { ...pet, id: yield* insertedId(insert, name, categoryId, status) };
      yield* record(petCreated(created, by));
      return created;
    });
  }

  updatePet(id: bigint, change: PetChange, by: Attribution) {
    return this.#change(`pet ${id}`, function* (record): Steps<
      Pet | Rejection<"pet_not_found" | "pet_ordered">
    > {
      const before = yield* lockPet(id, "UPDATE");
      if (before === undefined) return petNotFound(id);
      const after = applyPetChange(before, change);
      const entry = petUpdated(before, after, by);
      if (entry === undefined) return before;
      const { name, categoryId, status } = after;
      const placed = "SELECT id FROM orders WHERE pet_id = ? AND status = 'placed'";
      const [order] = status === before.status ? [] : yield* rowsOf<{ id: bigint }>(placed, id);
      if (order !== undefined) return petOrdered(id, order.id);
      const update = "UPDATE pets SET name = ?, category_id = ?, status = ? WHERE id = ?";
      yield* rowsOf(update, name, categoryId, status ?? null, id);
      yield* record(entry);
      return after;
    });
  }

  deletePet(id: bigint, by: Attribution) {
    return this.#change(`pet ${id}`, function* (record): Steps<
      Pet | Rejection<"pet_not_found" | "pet_has_orders">
    > {
      const pet = yield* lockPet(id, "UPDATE");
      if (pet === undefined) return petNotFound(id);
      const latest = "SELECT id FROM orders WHERE pet_id = ? ORDER BY pet_id DESC, id DESC LIMIT 1";
      const [order] = yield* rowsOf<{ id: bigint }>(latest, id);
      if (order !== undefined) return petHasOrders(id, order.id);
      yield* rowsOf("DELETE FROM pets WHERE id = ?", id);
      yield* record(petDeleted(pet, by));
      return pet;
    });
  }

  #change<T>(row: string, work: (record: (entry: NewAuditEntry) => Steps<void>) => Steps<T>): Promise<T> {
    const { petsChanged } = this.database;
    const record = function* (entry: NewAuditEntry) {
      yield* addAudit(entry);
      if (petsChanged) yield* petsChanged();
    };
    return this.database.write(row, () => work(record));
  }
}
