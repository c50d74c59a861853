/*
 * What clients and operators read and write of pets and orders, on both databases. Locks are taken in one order (order,
 * pet, next identifier), so that they cannot deadlock. A pet is locked before its orders are read, so an order that is
 * placed at the same time is either seen or finds the pet as it is afterwards.
 */

import type { Rejection } from "../api/errors.ts";
import { formatTime } from "../text/formatting.ts";
import type { Attribution, NewAuditEntry } from "../domain/audit.ts";
import { etagOf, matchesStrongEtag } from "../runtime/etag.ts";
import { withChange } from "../domain/fields.ts";
import {
  orderUpdateEntry,
  petCreationEntry,
  petDeletionEntry,
  petUpdateEntry,
} from "../domain/pet-and-order-entries.ts";
import type {
  OperatorPetStore,
  OrderPageQuery,
  OrderPlacement,
  OrderQuery,
  OwnOrderUpdate,
  PetQuery,
  ClientStore,
  WriteResult,
} from "../domain/ports/pets-and-orders.ts";
import type { Page } from "../domain/pages.ts";
import {
  canBeOrdered,
  encodeOrder,
  type NewPet,
  type OperatorOrder,
  type Order,
  orderClosed,
  orderNotFound,
  type OrderUpdate,
  type Pet,
  petNotAvailable,
  petNotFound,
  preconditionFailed,
  type PetStatus,
  type PetUpdate,
  STATUS_AFTER,
  STATUS_WHEN_ORDERED,
  petHasOrders,
  petOrdered,
} from "../domain/pets-and-orders.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { addAudit } from "./audit.ts";
import { orderPage, orderPageOfKey, petPage, petSearch } from "./pet-and-order-lists.ts";
import { OPERATOR_ORDER_ROWS, ORDER_ROWS, PET_ROWS } from "./sql/rows.ts";
import {
  readFirst,
  readBoundedPage,
  readPage,
  rowsOf,
  rowsOfQuery,
  type SqlDatabase,
  type Statements,
  type Steps,
} from "./sql/steps.ts";
import type { Dialect } from "./sql/dialect.ts";

const SELECT_ORDER = `SELECT ${ORDER_ROWS.selected} FROM orders WHERE id = ? AND key_id = ?`;
const SELECT_ORDER_OF_ANY_KEY = `SELECT ${OPERATOR_ORDER_ROWS.selected} FROM orders WHERE id = ?`;
const SELECT_PET = `SELECT ${PET_ROWS.selected} FROM pets WHERE id = ?`;

/** Creates an order and makes its pet pending. */
export function* placeOrder(
  { keyId, petId }: OrderPlacement,
  at: number,
  dialect: Dialect,
): Steps<WriteResult | Rejection<"pet_not_found" | "pet_not_available">> {
  const pet = yield* lockPet(petId, "NO KEY UPDATE NOWAIT", dialect);
  if (pet === undefined) return petNotFound(petId);
  if (!canBeOrdered(pet.status)) return petNotAvailable(petId, pet.status);
  yield* setPetStatus(petId, STATUS_WHEN_ORDERED, dialect);
  const order = { petId, status: "placed", createdAt: formatTime(at) } as const;
  const id = yield* OPERATOR_ORDER_ROWS.insert({ ...order, keyId, closedAt: null }, dialect);
  return { id, body: encodeOrder({ id, ...order }), replayed: false };
}

/** Completes or cancels an order of a key. */
export function* updateOrder(
  { keyId, id, status, ifMatch }: OwnOrderUpdate,
  at: number,
  dialect: Dialect,
): Steps<Order | Rejection<"order_not_found" | "order_closed" | "precondition_failed">> {
  const select = SELECT_ORDER + dialect.lockRows("UPDATE NOWAIT");
  const order = yield* readFirst(ORDER_ROWS.objectOf, select, id, keyId);
  if (order === undefined) return orderNotFound(id);
  // A repeat succeeds although the first request has changed the ETag (RFC 9110, 13.1.1).
  if (order.status === status) return order;
  if (ifMatch !== undefined && !matchesStrongEtag(ifMatch, etagOf(encodeOrder(order))))
    return preconditionFailed(id);
  return (yield* setOrderStatus(order, { status, at }, dialect)) ?? { ...order, status };
}

/** Completes or cancels an order whose row is locked, and makes its pet sold or available. */
function* setOrderStatus(
  { id, petId, status }: Order,
  update: OrderUpdate & { readonly at: number },
  dialect: Dialect,
): Steps<Rejection<"order_closed"> | undefined> {
  if (status !== "placed") return orderClosed(id, status);
  yield* rowsOf("UPDATE orders SET status = ?, closed_at = ? WHERE id = ?", update.status, update.at, id);
  yield* setPetStatus(petId, STATUS_AFTER[update.status], dialect);
  return undefined;
}

function* lockPet(
  id: bigint,
  lock: "UPDATE NOWAIT" | "NO KEY UPDATE NOWAIT",
  dialect: Dialect,
): Steps<Pet | undefined> {
  return yield* readFirst(PET_ROWS.objectOf, SELECT_PET + dialect.lockRows(lock), id);
}

function* setPetStatus(id: bigint, status: PetStatus, dialect: Dialect): Steps<void> {
  const locked = `SELECT id FROM pets WHERE id = ?${dialect.lockRows("NO KEY UPDATE NOWAIT")}`;
  yield* rowsOf(`UPDATE pets SET status = ? WHERE id = (${locked})`, status, id);
}

/** The part of a ClientStore that both databases share: its reads. */
export abstract class SqlClientStore implements Pick<ClientStore, "listOrders" | "getOrder"> {
  constructor(protected readonly database: SqlDatabase) {}

  listOrders(keyId: number, query: OrderPageQuery): Awaitable<Page<Order>> {
    const statement = orderPageOfKey(keyId, query, this.database.dialect);
    return this.database.read(() => readPage(statement, query.limit, ORDER_ROWS.objectOf));
  }

  getOrder(keyId: number, id: bigint): Awaitable<Order | undefined> {
    return this.database.read(() => readFirst(ORDER_ROWS.objectOf, SELECT_ORDER, id, keyId));
  }
}

interface OperatorPetDatabase extends Omit<SqlDatabase, "write"> {
  /** Runs a transaction after those of the same row, such as `pet 7`. It delays none of another row. */
  write<T>(row: string, statements: Statements<T>): Promise<T>;
  /** Called in the transaction of a change to pets. */
  petsChanged?(): void;
}

export class SqlOperatorPetStore implements OperatorPetStore {
  constructor(private readonly database: OperatorPetDatabase) {}

  listPets(query: PetQuery): Awaitable<Page<Pet>> {
    const statement = petPage(query, this.database.dialect);
    return this.database.read(() => readPage(statement, query.limit, PET_ROWS.objectOf));
  }

  searchPets(text: string, query: PetQuery): Awaitable<Page<Pet>> {
    const page = petSearch(text, query, this.database.dialect);
    return this.database.read(() => readBoundedPage(page, query.limit, PET_ROWS.objectOf));
  }

  getPet(id: bigint): Awaitable<Pet | undefined> {
    return this.database.read(() => readFirst(PET_ROWS.objectOf, SELECT_PET, id));
  }

  listOrders(query: OrderQuery): Awaitable<Page<OperatorOrder>> {
    const page = orderPage(query, this.database.dialect);
    return this.database.read(() => readBoundedPage(page, query.limit, OPERATOR_ORDER_ROWS.objectOf));
  }

  getOrder(id: bigint): Awaitable<OperatorOrder | undefined> {
    return this.database.read(() => readFirst(OPERATOR_ORDER_ROWS.objectOf, SELECT_ORDER_OF_ANY_KEY, id));
  }

  updateOrder(id: bigint, status: OrderUpdate["status"], by: Attribution) {
    const { dialect } = this.database;
    return this.#write(`order ${id}`, function* (recordPetChange): Steps<
      OperatorOrder | Rejection<"order_not_found" | "order_closed">
    > {
      const select = SELECT_ORDER_OF_ANY_KEY + dialect.lockRows("UPDATE NOWAIT");
      const order = yield* readFirst(OPERATOR_ORDER_ROWS.objectOf, select, id);
      if (order === undefined) return orderNotFound(id);
      if (order.status === status) return order;
      const rejection = yield* setOrderStatus(order, { status, at: by.at }, dialect);
      if (rejection !== undefined) return rejection;
      yield* recordPetChange(orderUpdateEntry(id, status, by));
      return { ...order, status, closedAt: formatTime(by.at) };
    });
  }

  createPet(pet: NewPet, by: Attribution): Promise<Pet> {
    const { dialect } = this.database;
    return this.#write("next pet", function* (recordPetChange) {
      const created = { id: yield* PET_ROWS.insert(pet, dialect), ...pet };
      yield* recordPetChange(petCreationEntry(created, by));
      return created;
    });
  }

  updatePet(id: bigint, change: PetUpdate, by: Attribution) {
    const { dialect } = this.database;
    return this.#write(`pet ${id}`, function* (recordPetChange): Steps<
      Pet | Rejection<"pet_not_found" | "pet_ordered">
    > {
      const before = yield* lockPet(id, "UPDATE NOWAIT", dialect);
      if (before === undefined) return petNotFound(id);
      const after = withChange(before, change);
      const entry = petUpdateEntry(before, after, by);
      if (entry === undefined) return before;
      const placed = "SELECT id FROM orders WHERE pet_id = ? AND status = 'placed'";
      const [order] = after.status === before.status ? [] : yield* rowsOf<{ id: bigint }>(placed, id);
      if (order !== undefined) return petOrdered(id, order.id);
      yield* rowsOfQuery(PET_ROWS.update(id, after));
      yield* recordPetChange(entry);
      return after;
    });
  }

  deletePet(id: bigint, by: Attribution) {
    const { dialect } = this.database;
    return this.#write(`pet ${id}`, function* (recordPetChange): Steps<
      Pet | Rejection<"pet_not_found" | "pet_has_orders">
    > {
      const pet = yield* lockPet(id, "UPDATE NOWAIT", dialect);
      if (pet === undefined) return petNotFound(id);
      const latest = "SELECT id FROM orders WHERE pet_id = ? ORDER BY pet_id DESC, id DESC LIMIT 1";
      const [order] = yield* rowsOf<{ id: bigint }>(latest, id);
      if (order !== undefined) return petHasOrders(id, order.id);
      yield* rowsOf("DELETE FROM pets WHERE id = ?", id);
      yield* recordPetChange(petDeletionEntry(pet, by));
      return pet;
    });
  }

  #write<T>(
    row: string,
    work: (recordPetChange: (entry: NewAuditEntry) => Steps<void>) => Steps<T>,
  ): Promise<T> {
    const { petsChanged } = this.database;
    const recordPetChange = function* (entry: NewAuditEntry) {
      yield* addAudit(entry);
      petsChanged?.();
    };
    return this.database.write(row, () => work(recordPetChange));
  }
}
