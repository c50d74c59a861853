import {
  type ErrorCode,
  orderClosed,
  orderNotFound,
  petNotAvailable,
  petNotFound,
  type Rejection,
} from "../../contract/errors.ts";
import {
  encodeOrder,
  encodePet,
  type NewPet,
  type Order,
  type OrderStatus,
  type OrderUpdate,
  type Pet,
  type PetStatus,
} from "../../contract/resources.ts";
import { canBeOrdered, STATUS_AFTER, STATUS_WHEN_ORDERED } from "../../domain/orders.ts";
import type { IdempotentRequest, Page, PageQuery, Store, WriteResult } from "../../domain/ports.ts";
import {
  Claims,
  type IdempotentOperation,
  type IdempotencyRejection,
  STILL_RUNNING,
} from "../idempotency.ts";
import { IdempotencyRecords } from "./idempotency-records.ts";
import { type GroupCommitOptions, GroupCommit } from "./group-commit.ts";
import type { Connection } from "./connection.ts";
import { ChangeCounters } from "./change-counters.ts";
import { Orders } from "./orders.ts";
import { Pets } from "./pets.ts";
import { SqlitePetJson } from "./pet-json.ts";

/** A write that its caller may repeat. */
interface Retriable<Code extends ErrorCode> {
  readonly operation: IdempotentOperation;
  readonly at: number;
  readonly idempotentRequest: IdempotentRequest | undefined;
  readonly work: () => WriteResult | Rejection<Code>;
}

/** Reads answer at once; writes share transactions. A write that is refused has written nothing when it says so. */
export class SqliteStore implements Store {
  readonly petJson: SqlitePetJson;
  readonly #pets: Pets;
  readonly #orders: Orders;
  readonly #attempts: IdempotencyRecords;
  readonly #claims = new Claims();
  readonly #commits: GroupCommit;
  /** By the caller's clock, as everything here. */
  #lastWriteAt = 0;

  constructor(
    private readonly connection: Connection,
    options: Omit<GroupCommitOptions, "housekeep"> = {},
  ) {
    const changes = new ChangeCounters();
    this.#pets = new Pets(connection, changes);
    this.petJson = new SqlitePetJson(connection, changes);
    this.#orders = new Orders(connection);
    this.#attempts = new IdempotencyRecords(connection);
    const housekeep = (writes: number) => this.#attempts.purge(this.#lastWriteAt, writes);
    this.#commits = new GroupCommit(connection, { ...options, housekeep });
  }

  listPets(query: PageQuery<PetStatus>): Page<Pet> {
    return this.#pets.list(query);
  }

  getPet(id: bigint): Pet | undefined {
    return this.#pets.get(id);
  }

  createPet(pet: NewPet, at: number, idempotentRequest?: IdempotentRequest) {
    return this.#write<never>({
      operation: "createPet",
      at,
      idempotentRequest,
      work: () => {
        const id = this.#pets.insert(pet);
        return { id, body: encodePet({ ...pet, id }), replayed: false };
      },
    });
  }

  listOrders(query: PageQuery<OrderStatus>): Page<Order> {
    return this.#orders.list(query);
  }

  placeOrder(petId: bigint, at: number, idempotentRequest?: IdempotentRequest) {
    return this.#write<"pet_not_found" | "pet_not_available">({
      operation: "placeOrder",
      at,
      idempotentRequest,
      work: () => {
        const pet = this.#pets.get(petId);
        if (pet === undefined) return petNotFound(petId);
        if (!canBeOrdered(pet.status)) return petNotAvailable(petId, pet.status);
        this.#pets.setStatus(petId, STATUS_WHEN_ORDERED);
        const order = this.#orders.insert(petId, at);
        return { id: order.id, body: encodeOrder(order), replayed: false };
      },
    });
  }

  updateOrder(id: bigint, status: OrderUpdate["status"]) {
    return this.#commits.submit((): Order | Rejection<"order_not_found" | "order_closed"> => {
      const order = this.#orders.get(id);
      if (order === undefined) return orderNotFound(id);
      if (order.status !== "placed") return orderClosed(id, order.status);
      this.#orders.setStatus(id, status);
      this.#pets.setStatus(order.petId, STATUS_AFTER[status]);
      return { ...order, status };
    });
  }

  async close(): Promise<void> {
    await this.#commits.close();
    this.connection.close();
  }

  #write<Code extends ErrorCode>({ operation, at, idempotentRequest, work }: Retriable<Code>) {
    this.#lastWriteAt = at;
    if (idempotentRequest === undefined) return this.#commits.submit(work);
    return this.#writeOnce({ operation, at, idempotentRequest, work });
  }

  async #writeOnce<Code extends ErrorCode>(
    write: Retriable<Code> & { idempotentRequest: IdempotentRequest },
  ): Promise<WriteResult | IdempotencyRejection | Rejection<Code>> {
    const { operation, at, idempotentRequest, work } = write;
    const release = this.#claims.take(operation, idempotentRequest);
    if (release === undefined) return STILL_RUNNING;
    try {
      return await this.#commits.submit(() => {
        const recalled = this.#attempts.recall(operation, idempotentRequest, at);
        if (recalled !== undefined) return recalled;
        const answer = work();
        if (!("code" in answer)) this.#attempts.keep(operation, idempotentRequest, answer, at);
        return answer;
      });
    } finally {
      release();
    }
  }
}
