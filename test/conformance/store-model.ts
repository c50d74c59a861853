import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  encodeOrder,
  encodePet,
  type NewPet,
  type Order,
  type OrderStatus,
  type OrderUpdate,
  type Pet,
  type PetStatus,
} from "../../src/contract/resources.ts";
import type { IdempotentRequest, Page, PageQuery, Store, WriteResult } from "../../src/domain/ports.ts";
import { AT, DAY_MS, type OpenStore } from "./store-fixture.ts";

type Command =
  | { call: "createPet"; pet: NewPet; idempotentRequest: IdempotentRequest | undefined }
  | { call: "placeOrder"; petId: bigint; idempotentRequest: IdempotentRequest | undefined }
  | { call: "updateOrder"; id: bigint; status: OrderUpdate["status"] }
  | { call: "getPet"; id: bigint }
  | { call: "listPets"; query: PageQuery<PetStatus> }
  | { call: "listOrders"; query: PageQuery<OrderStatus> };

/** A refusal counts by its code; what it says is the engine's own. */
type Answer<T> = T | string;

/** A store that is right because there is nothing to it: arrays, searched from the front. */
class Model {
  readonly #pets: Pet[] = [];
  readonly #orders: Order[] = [];
  readonly #kept = new Map<string, { at: number; fingerprint: string; answer: WriteResult }>();

  /** `id` is what the store gave to whatever is new: engines may leave gaps, but may not go back. */
  createPet(
    command: { pet: NewPet; idempotentRequest: IdempotentRequest | undefined },
    at: number,
    id: bigint,
  ): Answer<WriteResult> {
    return this.#once(`createPet ${nameOf(command.idempotentRequest)}`, at, command.idempotentRequest, () => {
      expect(id).toBeGreaterThan(this.#pets.at(-1)?.id ?? 0n);
      const added: Pet = { ...command.pet, id };
      this.#pets.push(added);
      return { id, body: encodePet(added), replayed: false };
    });
  }

  placeOrder(
    command: { petId: bigint; idempotentRequest: IdempotentRequest | undefined },
    at: number,
    id: bigint,
  ): Answer<WriteResult> {
    const { petId, idempotentRequest } = command;
    return this.#once(`placeOrder ${nameOf(idempotentRequest)}`, at, idempotentRequest, () => {
      const pet = this.getPet(petId);
      if (pet === undefined) return "pet_not_found";
      if (pet.status === "pending" || pet.status === "sold") return "pet_not_available";
      expect(id).toBeGreaterThan(this.#orders.at(-1)?.id ?? 0n);
      this.#setStatus(petId, "pending");
      const order: Order = { id, petId, status: "placed", createdAt: new Date(at).toISOString() };
      this.#orders.push(order);
      return { id, body: encodeOrder(order), replayed: false };
    });
  }

  updateOrder(id: bigint, status: OrderUpdate["status"]): Answer<Order> {
    const place = this.#orders.findIndex((order) => order.id === id);
    const order = this.#orders[place];
    if (order === undefined) return "order_not_found";
    if (order.status !== "placed") return "order_closed";
    this.#setStatus(order.petId, status === "completed" ? "sold" : "available");
    return (this.#orders[place] = { ...order, status });
  }

  getPet(id: bigint): Pet | undefined {
    return this.#pets.find((pet) => pet.id === id);
  }

  listPets(query: PageQuery<PetStatus>): Page<Pet> {
    return pageOf(this.#pets, query);
  }

  listOrders(query: PageQuery<OrderStatus>): Page<Order> {
    return pageOf(this.#orders, query);
  }

  #setStatus(petId: bigint, status: PetStatus): void {
    const place = this.#pets.findIndex(({ id }) => id === petId);
    const pet = this.#pets[place];
    if (pet !== undefined) this.#pets[place] = { ...pet, status };
  }

  #once(
    name: string,
    at: number,
    idempotentRequest: IdempotentRequest | undefined,
    work: () => Answer<WriteResult>,
  ): Answer<WriteResult> {
    if (idempotentRequest === undefined) return work();
    const kept = this.#kept.get(name);
    if (kept !== undefined && at - kept.at < DAY_MS) {
      if (kept.fingerprint !== idempotentRequest.fingerprint) return "idempotency_key_reused";
      return { ...kept.answer, replayed: true };
    }
    const answer = work();
    if (typeof answer !== "string")
      this.#kept.set(name, { at, fingerprint: idempotentRequest.fingerprint, answer });
    return answer;
  }
}

function nameOf(idempotentRequest: IdempotentRequest | undefined): string {
  return `${idempotentRequest?.keyId} ${idempotentRequest?.idempotencyKey}`;
}

function pageOf<T extends { id: bigint; status?: string }>(entries: T[], query: PageQuery<string>): Page<T> {
  const { after = 0n, status, limit } = query;
  const fitting = entries.filter(
    (entry) => entry.id > after && (status === undefined || entry.status === status),
  );
  return { items: fitting.slice(0, limit), more: fitting.length > limit };
}

async function askStore(store: Store, command: Command, at: number): Promise<unknown> {
  const answer = await callStore(store, command, at);
  return answer !== undefined && "code" in answer ? answer.code : answer;
}

function callStore(store: Store, command: Command, at: number) {
  switch (command.call) {
    case "createPet":
      return store.createPet(command.pet, at, command.idempotentRequest);
    case "placeOrder":
      return store.placeOrder(command.petId, at, command.idempotentRequest);
    case "updateOrder":
      return store.updateOrder(command.id, command.status);
    case "getPet":
      return store.getPet(command.id);
    case "listPets":
      return store.listPets(command.query);
    case "listOrders":
      return store.listOrders(command.query);
  }
}

function askModel(model: Model, command: Command, at: number, given: unknown): unknown {
  const id = typeof given === "object" && given !== null && "id" in given ? BigInt(String(given.id)) : 0n;
  switch (command.call) {
    case "createPet":
      return model.createPet(command, at, id);
    case "placeOrder":
      return model.placeOrder(command, at, id);
    case "updateOrder":
      return model.updateOrder(command.id, command.status);
    case "getPet":
      return model.getPet(command.id);
    case "listPets":
      return model.listPets(command.query);
    case "listOrders":
      return model.listOrders(command.query);
  }
}

const petStatus = fc.constantFrom<PetStatus>("available", "pending", "sold");
const orderStatus = fc.constantFrom<OrderStatus>("placed", "completed", "cancelled");
/** Few identifiers and few keys, so that commands meet. */
const identifier = fc.bigInt({ min: 0n, max: 8n });
const idempotentRequest = fc.option(
  fc.record({
    keyId: fc.integer({ min: 1, max: 2 }),
    idempotencyKey: fc.constantFrom("a", "A"),
    fingerprint: fc.constantFrom("1".repeat(64), "2".repeat(64)),
  }),
  { nil: undefined },
);
const pet: fc.Arbitrary<NewPet> = fc.record(
  {
    name: fc.string({ unit: "binary", minLength: 1, maxLength: 20 }).filter((name) => !name.includes("\0")),
    categoryId: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    status: petStatus,
  },
  { requiredKeys: ["name", "categoryId"] },
);

function queryOf<S>(status: fc.Arbitrary<S>): fc.Arbitrary<PageQuery<S>> {
  const fields = { limit: fc.integer({ min: 1, max: 5 }), after: identifier, status };
  return fc.record(fields, { requiredKeys: ["limit"] });
}

const command: fc.Arbitrary<Command> = fc.oneof(
  fc.record({ call: fc.constant("createPet" as const), pet, idempotentRequest }),
  fc.record({ call: fc.constant("placeOrder" as const), petId: identifier, idempotentRequest }),
  fc.record({
    call: fc.constant("updateOrder" as const),
    id: identifier,
    status: fc.constantFrom("completed" as const, "cancelled" as const),
  }),
  fc.record({ call: fc.constant("getPet" as const), id: identifier }),
  fc.record({ call: fc.constant("listPets" as const), query: queryOf(petStatus) }),
  fc.record({ call: fc.constant("listOrders" as const), query: queryOf(orderStatus) }),
);
const step = fc.record({ afterMs: fc.constantFrom(0, 0, 0, 1, DAY_MS / 2, DAY_MS), command });

export function modelCases(open: OpenStore): void {
  test("any sequence of operations is answered as by a model of a few arrays", async () => {
    const steps = fc.array(step, { minLength: 10, maxLength: 60, size: "max" });
    const agrees = fc.asyncProperty(steps, async (steps) => {
      const opened = await open();
      const model = new Model();
      let at = AT;
      try {
        for (const { afterMs, command } of steps) {
          at += afterMs;
          const answer = await askStore(opened.store, command, at);
          expect(answer).toStrictEqual(askModel(model, command, at, answer));
        }
      } finally {
        await opened.close();
      }
    });
    await fc.assert(agrees, { numRuns: 40 });
  }, 30_000);
}
