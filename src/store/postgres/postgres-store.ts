import type { NewPet, Order, OrderStatus, OrderUpdate, Pet, PetStatus } from "../../contract/resources.ts";
import type { Attempt, Page, Query, Store } from "../../domain/ports.ts";
import { Claims, type RetriableOperation, type Retried, STILL_RUNNING } from "../idempotency.ts";
import { ORDER_COLUMNS, orderOf, type OrderRow, PET_COLUMNS, petOf, type PetRow } from "../rows.ts";
import { Attempts } from "./idempotency-records.ts";
import { Batches } from "./group-commit.ts";
import { type Create, type Created, Creates } from "./creates.ts";
import type { Engine } from "./pools.ts";
import { Listing } from "./page-query.ts";
import { placeOrder, updateOrder } from "./orders.ts";

export const PETS = { table: "pets", columns: PET_COLUMNS };
export const ORDERS = { table: "orders", columns: ORDER_COLUMNS };

/** Animals and orders. Creates that arrive together share a transaction; an order has one of its own. */
export class PostgresStore implements Store {
  readonly #engine: Engine;
  readonly #pets: Listing<PetRow, Pet>;
  readonly #orders: Listing<OrderRow, Order>;
  readonly #claims = new Claims();
  readonly #creates: Batches<Create, Created>;
  readonly #placed: Attempts;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#pets = new Listing(engine.reads, PETS, petOf);
    this.#orders = new Listing(engine.reads, ORDERS, orderOf);
    this.#placed = new Attempts("placeOrder", engine.writes);
    const creates = new Creates(engine.creates, new Attempts("createPet", engine.writes));
    this.#creates = new Batches({
      run: (batch) => creates.run(batch),
      maxWaiting: engine.maxWaiting,
      maxWaitMs: engine.deadlineMs,
    });
  }

  listPets(query: Query<PetStatus>): Promise<Page<Pet>> {
    return this.#pets.page(query);
  }

  async getPet(id: bigint): Promise<Pet | undefined> {
    const [row] = await this.#engine.reads.run((sql) =>
      sql.unsafe<PetRow[]>(`SELECT ${PET_COLUMNS} FROM pets WHERE id = $1`, [id]),
    );
    return row && petOf(row);
  }

  async createPet(pet: NewPet, at: number, attempt?: Attempt) {
    return this.#once("createPet", attempt, () => this.#creates.submit({ pet, at, attempt }));
  }

  listOrders(query: Query<OrderStatus>): Promise<Page<Order>> {
    return this.#orders.page(query);
  }

  async placeOrder(petId: bigint, at: number, attempt?: Attempt) {
    const write = { at, attempt };
    return this.#once("placeOrder", attempt, async () => {
      const answer = await this.#engine.writes.transaction(async (tx) => {
        const known = (await this.#placed.begin(tx, [write])).get(write);
        if (known !== undefined) return known;
        const answer = await placeOrder(tx, petId, at);
        if (!("refused" in answer)) await this.#placed.keep(tx, [[write, answer]]);
        return answer;
      });
      if (attempt !== undefined) this.#placed.tidy([write]);
      return answer;
    });
  }

  async updateOrder(id: bigint, status: OrderUpdate["status"]) {
    return this.#engine.writes.transaction((tx) => updateOrder(tx, id, status));
  }

  async close(): Promise<void> {
    await this.#creates.close();
    await this.#engine.close();
  }

  /** A repeat on this instance is turned away before it costs a connection; on another one, the engine does so. */
  async #once<T>(
    operation: RetriableOperation,
    attempt: Attempt | undefined,
    work: () => Promise<T>,
  ): Promise<T | Retried> {
    if (attempt === undefined) return work();
    const release = this.#claims.take(operation, attempt);
    if (release === undefined) return STILL_RUNNING;
    try {
      return await work();
    } finally {
      release();
    }
  }
}
