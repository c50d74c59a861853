import type { NewPet, Order, OrderStatus, OrderUpdate, Pet, PetStatus } from "../../contract/resources.ts";
import type { IdempotentRequest, Page, PageQuery, Store } from "../../domain/ports.ts";
import {
  Claims,
  type IdempotentOperation,
  type IdempotencyRejection,
  STILL_RUNNING,
} from "../idempotency.ts";
import { ORDER_COLUMNS, orderOf, type OrderRow, PET_COLUMNS, petOf, type PetRow } from "../rows.ts";
import { IdempotencyRecords } from "./idempotency-records.ts";
import { GroupCommit } from "./group-commit.ts";
import { type Create, type Created, Creates } from "./creates.ts";
import type { Pools } from "./pools.ts";
import { Listing } from "./page-query.ts";
import { placeOrder, updateOrder } from "./orders.ts";

export const PETS = { table: "pets", columns: PET_COLUMNS };
export const ORDERS = { table: "orders", columns: ORDER_COLUMNS };

/** Pets and orders. Creates that arrive together share a transaction; an order has one of its own. */
export class PostgresStore implements Store {
  readonly #pools: Pools;
  readonly #pets: Listing<PetRow, Pet>;
  readonly #orders: Listing<OrderRow, Order>;
  readonly #claims = new Claims();
  readonly #creates: GroupCommit<Create, Created>;
  readonly #placed: IdempotencyRecords;

  constructor(pools: Pools) {
    this.#pools = pools;
    this.#pets = new Listing(pools.reads, PETS, petOf);
    this.#orders = new Listing(pools.reads, ORDERS, orderOf);
    this.#placed = new IdempotencyRecords("placeOrder", pools.writes);
    const creates = new Creates(pools.creates, new IdempotencyRecords("createPet", pools.writes));
    this.#creates = new GroupCommit({
      run: (batch) => creates.run(batch),
      maxWaiting: pools.maxWaiting,
      maxWaitMs: pools.deadlineMs,
    });
  }

  listPets(query: PageQuery<PetStatus>): Promise<Page<Pet>> {
    return this.#pets.page(query);
  }

  async getPet(id: bigint): Promise<Pet | undefined> {
    const [row] = await this.#pools.reads.run((sql) =>
      sql.unsafe<PetRow[]>(`SELECT ${PET_COLUMNS} FROM pets WHERE id = $1`, [id]),
    );
    return row && petOf(row);
  }

  async createPet(pet: NewPet, at: number, idempotentRequest?: IdempotentRequest) {
    return this.#once("createPet", idempotentRequest, () =>
      this.#creates.submit({ pet, at, idempotentRequest }),
    );
  }

  listOrders(query: PageQuery<OrderStatus>): Promise<Page<Order>> {
    return this.#orders.page(query);
  }

  async placeOrder(petId: bigint, at: number, idempotentRequest?: IdempotentRequest) {
    const write = { at, idempotentRequest };
    return this.#once("placeOrder", idempotentRequest, async () => {
      const answer = await this.#pools.writes.transaction(async (tx) => {
        const known = (await this.#placed.begin(tx, [write])).get(write);
        if (known !== undefined) return known;
        const answer = await placeOrder(tx, petId, at);
        if (!("code" in answer)) await this.#placed.keep(tx, [[write, answer]]);
        return answer;
      });
      if (idempotentRequest !== undefined) this.#placed.tidy([write]);
      return answer;
    });
  }

  async updateOrder(id: bigint, status: OrderUpdate["status"]) {
    return this.#pools.writes.transaction((tx) => updateOrder(tx, id, status));
  }

  async close(): Promise<void> {
    await this.#creates.close();
    await this.#pools.close();
  }

  /** A repeat on this instance is turned away before it costs a connection; on another one, the engine does so. */
  async #once<T>(
    operation: IdempotentOperation,
    idempotentRequest: IdempotentRequest | undefined,
    work: () => Promise<T>,
  ): Promise<T | IdempotencyRejection> {
    if (idempotentRequest === undefined) return work();
    const release = this.#claims.take(operation, idempotentRequest);
    if (release === undefined) return STILL_RUNNING;
    try {
      return await work();
    } finally {
      release();
    }
  }
}
