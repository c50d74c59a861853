import { orderClosed, orderNotFound, petNotFound } from "../../domain/rejections.ts";
import { type Rejection } from "../../api/errors.ts";
import type { Order, OrderUpdate, Pet } from "../../domain/resources.ts";
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
import type { OperatorStore, Page } from "../../domain/ports.ts";
import { AuditEntries } from "./audit.ts";
import type { Connection } from "./connection.ts";
import type { Orders } from "./orders.ts";
import { OrdersOfAllKeys } from "./orders-of-all-keys.ts";
import type { PetRevision } from "./pet-pages/pet-revision.ts";
import type { Pets } from "./pets.ts";

export interface OperatorStoreOptions {
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
