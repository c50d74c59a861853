import type { ErrorCode, Refusal } from "../../contract/errors.ts";
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
import type { Attempt, Page, Query, Store, Written, WrittenPets } from "../../domain/ports.ts";
import { Claims, type RetriableOperation, type Retried, STILL_RUNNING } from "../idempotency.ts";
import { orderClosed, orderNotFound, petNotAvailable, petNotFound } from "../rejections.ts";
import { Attempts } from "./idempotency-records.ts";
import { type CommitOptions, Commits } from "./group-commit.ts";
import type { Connection } from "./connection.ts";
import { ChangeCounts } from "./change-counters.ts";
import { Orders } from "./orders.ts";
import { Pets } from "./pets.ts";
import { SqliteWrittenPets } from "./pet-json.ts";

/** A write that its caller may repeat. */
interface Retriable<Code extends ErrorCode> {
  readonly operation: RetriableOperation;
  readonly at: number;
  readonly attempt: Attempt | undefined;
  readonly work: () => Written | Refusal<Code>;
}

/** Reads answer at once; writes share transactions. A write that is refused has written nothing when it says so. */
export class SqliteStore implements Store {
  readonly freshness = new ChangeCounts();
  readonly written: WrittenPets;
  readonly #pets: Pets;
  readonly #orders: Orders;
  readonly #attempts: Attempts;
  readonly #claims = new Claims();
  readonly #commits: Commits;
  /** By the caller's clock, as everything here. */
  #lastWriteAt = 0;

  constructor(
    private readonly connection: Connection,
    options: Omit<CommitOptions, "housekeep"> = {},
  ) {
    this.#pets = new Pets(connection, this.freshness);
    this.written = new SqliteWrittenPets(connection, this.freshness);
    this.#orders = new Orders(connection);
    this.#attempts = new Attempts(connection);
    const housekeep = (writes: number) => this.#attempts.purge(this.#lastWriteAt, writes);
    this.#commits = new Commits(connection, { ...options, housekeep });
  }

  listPets(query: Query<PetStatus>): Page<Pet> {
    return this.#pets.list(query);
  }

  getPet(id: bigint): Pet | undefined {
    return this.#pets.get(id);
  }

  createPet(pet: NewPet, at: number, attempt?: Attempt) {
    return this.#write<never>({
      operation: "createPet",
      at,
      attempt,
      work: () => {
        const id = this.#pets.insert(pet);
        return { id, body: encodePet({ ...pet, id }), replayed: false };
      },
    });
  }

  listOrders(query: Query<OrderStatus>): Page<Order> {
    return this.#orders.list(query);
  }

  placeOrder(petId: bigint, at: number, attempt?: Attempt) {
    return this.#write<"pet_not_found" | "pet_not_available">({
      operation: "placeOrder",
      at,
      attempt,
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
    return this.#commits.submit((): Order | Refusal<"order_not_found" | "order_closed"> => {
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

  #write<Code extends ErrorCode>({ operation, at, attempt, work }: Retriable<Code>) {
    this.#lastWriteAt = at;
    if (attempt === undefined) return this.#commits.submit(work);
    return this.#writeOnce({ operation, at, attempt, work });
  }

  async #writeOnce<Code extends ErrorCode>(
    write: Retriable<Code> & { attempt: Attempt },
  ): Promise<Written | Retried | Refusal<Code>> {
    const { operation, at, attempt, work } = write;
    const release = this.#claims.take(operation, attempt);
    if (release === undefined) return STILL_RUNNING;
    try {
      return await this.#commits.submit(() => {
        const recalled = this.#attempts.recall(operation, attempt, at);
        if (recalled !== undefined) return recalled;
        const answer = work();
        if (!("refused" in answer)) this.#attempts.keep(operation, attempt, answer, at);
        return answer;
      });
    } finally {
      release();
    }
  }
}
