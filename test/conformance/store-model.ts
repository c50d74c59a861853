import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { INT64_MAX, INT64_MIN } from "../../src/api/json.ts";
import {
  encodeOrder,
  encodePet,
  type NewPet,
  type Order,
  type OrderStatus,
  type OrderUpdate,
  type Pet,
  type PetStatus,
} from "../../src/domain/resources.ts";
import type { OperatorOrder, OrderQuery, PetChange } from "../../src/domain/corrections.ts";
import type {
  IdempotentRequest,
  OrderClosing,
  Page,
  PageQuery,
  PetQuery,
  Stores,
  WriteResult,
} from "../../src/domain/ports.ts";
import { AT, DAY_MS, type OpenedStores, type OpenStores } from "./store-fixture.ts";

type Command =
  | { call: "createPet"; pet: NewPet; request: IdempotentRequest | undefined }
  | { call: "placeOrder"; keyId: number; petId: bigint; request: IdempotentRequest | undefined }
  | { call: "updateOrder"; keyId: number; id: bigint; status: OrderUpdate["status"] }
  | { call: "getOrder"; keyId: number; id: bigint }
  | { call: "getPet"; id: bigint }
  | { call: "listPets"; query: PetQuery }
  | { call: "listOrders"; keyId: number; query: PageQuery<OrderStatus> }
  | { call: "correctPet"; id: bigint; change: PetChange }
  | { call: "deletePet"; id: bigint }
  | { call: "finishOrder"; id: bigint; status: OrderUpdate["status"] }
  | { call: "findOrder"; id: bigint }
  | { call: "listAllOrders"; query: OrderQuery };

/** Rejections are compared by their code. */
type Outcome<T> = T | string;

/** A store made of arrays that are searched from the front. */
class Model {
  readonly #pets: Pet[] = [];
  /** Also of pets that were deleted. */
  #lastPetId = 0n;
  readonly #orders: OperatorOrder[] = [];
  readonly #records = new Map<string, { at: number; fingerprint: string; result: WriteResult }>();

  createPet(
    command: { pet: NewPet; request: IdempotentRequest | undefined },
    at: number,
    id: bigint,
  ): Outcome<WriteResult> {
    return this.#runOnce("createPet", { at, request: command.request }, () => {
      expect(id).toBeGreaterThan(this.#lastPetId);
      this.#lastPetId = id;
      const added: Pet = { ...command.pet, id };
      this.#pets.push(added);
      return { id, body: encodePet(added), replayed: false };
    });
  }

  placeOrder(
    command: { keyId: number; petId: bigint; request: IdempotentRequest | undefined },
    at: number,
    id: bigint,
  ): Outcome<WriteResult> {
    const { keyId, petId, request } = command;
    return this.#runOnce("placeOrder", { at, request }, () => {
      const pet = this.getPet(petId);
      if (pet === undefined) return "pet_not_found";
      if (pet.status === "pending" || pet.status === "sold") return "pet_not_available";
      expect(id).toBeGreaterThan(this.#orders.at(-1)?.id ?? 0n);
      this.#setStatus(petId, "pending");
      const order: Order = { id, petId, status: "placed", createdAt: new Date(at).toISOString() };
      this.#orders.push({ ...order, keyId, closedAt: null });
      return { id, body: encodeOrder(order), replayed: false };
    });
  }

  updateOrder({ keyId, id, status }: OrderClosing, at: number): Outcome<Order> {
    const isOwn = this.#ordersOf(keyId).some((each) => each.id === id);
    const finished = isOwn ? this.finishOrder(id, status, at) : "order_not_found";
    return typeof finished === "string" ? finished : publicOrder(finished);
  }

  finishOrder(id: bigint, status: OrderUpdate["status"], at: number): Outcome<OperatorOrder> {
    const index = this.#orders.findIndex((each) => each.id === id);
    const order = this.#orders[index];
    if (order === undefined) return "order_not_found";
    if (order.status !== "placed") return "order_closed";
    this.#setStatus(order.petId, status === "completed" ? "sold" : "available");
    const closed = { ...order, status, closedAt: new Date(at).toISOString() };
    this.#orders[index] = closed;
    return closed;
  }

  correctPet(id: bigint, { status, ...change }: PetChange): Outcome<Pet> {
    const pet = this.getPet(id);
    if (pet === undefined) return "pet_not_found";
    const { status: oldStatus, ...rest } = pet;
    const newStatus = status === undefined ? oldStatus : (status ?? undefined);
    const isOrdered = this.#orders.some((order) => order.petId === id && order.status === "placed");
    if (isOrdered && newStatus !== oldStatus) return "pet_ordered";
    const changed = { ...rest, ...change, ...(newStatus !== undefined && { status: newStatus }) };
    this.#pets[this.#pets.indexOf(pet)] = changed;
    return changed;
  }

  deletePet(id: bigint): Outcome<Pet> {
    const pet = this.getPet(id);
    if (pet === undefined) return "pet_not_found";
    if (this.#orders.some(({ petId }) => petId === id)) return "pet_has_orders";
    this.#pets.splice(this.#pets.indexOf(pet), 1);
    return pet;
  }

  #ordersOf(keyId: number): Order[] {
    return this.#orders.filter((order) => order.keyId === keyId).map(publicOrder);
  }

  getPet(id: bigint): Pet | undefined {
    return this.#pets.find((pet) => pet.id === id);
  }

  /** `id` is the identifier that the store assigned: it can skip numbers, but it grows. */
  run(command: Command, at: number, id: bigint): unknown {
    switch (command.call) {
      case "createPet":
        return this.createPet(command, at, id);
      case "placeOrder":
        return this.placeOrder(command, at, id);
      case "updateOrder":
        return this.updateOrder(command, at);
      case "getPet":
        return this.getPet(command.id);
      case "getOrder":
        return this.#ordersOf(command.keyId).find(({ id }) => id === command.id);
      case "listPets":
        return pageOf(this.#pets, command.query);
      case "listOrders":
        return pageOf(this.#ordersOf(command.keyId), command.query);
      case "correctPet":
        return this.correctPet(command.id, command.change);
      case "deletePet":
        return this.deletePet(command.id);
      case "finishOrder":
        return this.finishOrder(command.id, command.status, at);
      case "findOrder":
        return this.#orders.find((order) => order.id === command.id);
      case "listAllOrders":
        return this.#listAllOrders(command.query);
    }
  }

  #listAllOrders({ keyId, petId, status, before, limit }: OrderQuery): Page<OperatorOrder> {
    const matching = this.#orders.filter(
      (order) =>
        (keyId === undefined || order.keyId === keyId) &&
        (petId === undefined || order.petId === petId) &&
        (status === undefined || order.status === status) &&
        (before === undefined || order.id < before),
    );
    return { items: matching.toReversed().slice(0, limit), hasMore: matching.length > limit };
  }

  #setStatus(petId: bigint, status: PetStatus): void {
    const index = this.#pets.findIndex(({ id }) => id === petId);
    const pet = this.#pets[index];
    if (pet !== undefined) this.#pets[index] = { ...pet, status };
  }

  #runOnce(
    operation: string,
    { at, request }: { at: number; request: IdempotentRequest | undefined },
    work: () => Outcome<WriteResult>,
  ): Outcome<WriteResult> {
    if (request === undefined) return work();
    const name = `${operation} ${request.keyId} ${request.idempotencyKey}`;
    const record = this.#records.get(name);
    if (record !== undefined && at - record.at < DAY_MS) {
      if (record.fingerprint !== request.fingerprint) return "idempotency_key_reused";
      return { ...record.result, replayed: true };
    }
    const result = work();
    if (typeof result !== "string") this.#records.set(name, { at, fingerprint: request.fingerprint, result });
    return result;
  }
}

function publicOrder({ id, petId, status, createdAt }: OperatorOrder): Order {
  return { id, petId, status, createdAt };
}

type ListQuery = PageQuery<string> & Pick<PetQuery, "ids">;

function pageOf<T extends { id: bigint; status?: string }>(items: T[], query: ListQuery): Page<T> {
  const { after = 0n, status, ids, limit } = query;
  const matching = items.filter(
    ({ id, ...item }) =>
      id > after &&
      (status === undefined || item.status === status) &&
      (ids === undefined || ids.includes(id)),
  );
  return { items: matching.slice(0, limit), hasMore: matching.length > limit };
}

async function runOnStore(opened: OpenedStores, command: Command, at: number): Promise<unknown> {
  const outcome = await callStore(opened, command, at);
  await expectSameJson(opened, command);
  return outcome !== undefined && "code" in outcome ? outcome.code : outcome;
}

/** The stores return pets as JSON too. */
async function expectSameJson({ store, petJson }: OpenedStores, command: Command): Promise<void> {
  if (command.call === "getPet") {
    const pet = await store.getPet(command.id);
    expect((await petJson.get(command.id))?.json).toBe(pet && encodePet(pet));
  }
  if (command.call === "listPets") {
    const { items, hasMore } = await store.listPets(command.query);
    const json = `[${items.map(encodePet).join(",")}]`;
    expect(await petJson.list(command.query)).toMatchObject({ json, last: items.at(-1)?.id, hasMore });
  }
}

function callStore({ store, corrections }: Stores, command: Command, at: number) {
  const by = { actor: { kind: "console" }, at } as const;
  switch (command.call) {
    case "createPet":
      return store.createPet(command.pet, at, command.request);
    case "placeOrder":
      return store.placeOrder(command, at, command.request);
    case "updateOrder":
      return store.updateOrder(command, at);
    case "getPet":
      return store.getPet(command.id);
    case "getOrder":
      return store.getOrder(command.keyId, command.id);
    case "listPets":
      return store.listPets(command.query);
    case "listOrders":
      return store.listOrders(command.keyId, command.query);
    case "correctPet":
      return corrections.updatePet(command.id, command.change, by);
    case "deletePet":
      return corrections.deletePet(command.id, by);
    case "finishOrder":
      return corrections.updateOrder(command.id, command.status, by);
    case "findOrder":
      return corrections.getOrder(command.id);
    case "listAllOrders":
      return corrections.listOrders(command.query);
  }
}

/** The identifier in an outcome of the store. */
function idOf(outcome: unknown): bigint {
  const hasId = typeof outcome === "object" && outcome !== null && "id" in outcome;
  return hasId ? BigInt(String(outcome.id)) : 0n;
}

const petStatus = fc.constantFrom<PetStatus>("available", "pending", "sold");
const orderStatus = fc.constantFrom<OrderStatus>("placed", "completed", "cancelled");
/** Few identifiers and keys, so that commands affect each other. */
const identifier = fc.oneof(
  { weight: 20, arbitrary: fc.bigInt({ min: 1n, max: 4n }) },
  { weight: 1, arbitrary: fc.constantFrom(INT64_MIN, -1n, 0n, INT64_MAX) },
);
const ids = fc.uniqueArray(identifier).map((some) => some.toSorted((a, b) => (a < b ? -1 : 1)));
const keyId = fc.constantFrom(1, 1, 1, Number.MAX_SAFE_INTEGER);
const request = fc.option(
  fc.record({
    keyId,
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

const finalStatus = fc.constantFrom("completed" as const, "cancelled" as const);
const change: fc.Arbitrary<PetChange> = fc.record(
  {
    name: fc.constantFrom("Rex", "Rover"),
    categoryId: fc.bigInt({ min: -1n, max: 1n }),
    status: fc.option(petStatus, { nil: null }),
  },
  { requiredKeys: [] },
);

const limit = fc.integer({ min: 1, max: 3 });

const petQuery: fc.Arbitrary<PetQuery> = fc.record(
  { limit, after: identifier, status: petStatus, ids },
  { requiredKeys: ["limit"] },
);
const ordersOfKey: fc.Arbitrary<PageQuery<OrderStatus>> = fc.record(
  { limit, after: identifier, status: orderStatus },
  { requiredKeys: ["limit"] },
);
const orderQuery: fc.Arbitrary<OrderQuery> = fc.record(
  { limit, before: identifier, status: orderStatus, keyId, petId: identifier },
  { requiredKeys: ["limit"] },
);

const command: fc.Arbitrary<Command> = fc.oneof(
  fc.record({ call: fc.constant("createPet" as const), pet, request }),
  fc.record({ call: fc.constant("placeOrder" as const), keyId, petId: identifier, request }),
  fc.record({
    call: fc.constant("updateOrder" as const),
    keyId,
    id: identifier,
    status: finalStatus,
  }),
  fc.record({ call: fc.constant("getPet" as const), id: identifier }),
  fc.record({ call: fc.constant("getOrder" as const), keyId, id: identifier }),
  fc.record({ call: fc.constant("listPets" as const), query: petQuery }),
  fc.record({ call: fc.constant("listOrders" as const), keyId, query: ordersOfKey }),
  fc.record({ call: fc.constant("correctPet" as const), id: identifier, change }),
  fc.record({ call: fc.constant("deletePet" as const), id: identifier }),
  fc.record({ call: fc.constant("finishOrder" as const), id: identifier, status: finalStatus }),
  fc.record({ call: fc.constant("findOrder" as const), id: identifier }),
  fc.record({ call: fc.constant("listAllOrders" as const), query: orderQuery }),
);
const step = fc.record({ afterMs: fc.constantFrom(0, 0, 0, 1, DAY_MS / 2, DAY_MS), command });

export function modelCases(open: OpenStores): void {
  test("any sequence of operations has the outcomes of a model made of arrays", async () => {
    const steps = fc.array(step, { minLength: 40, maxLength: 100, size: "max" });
    const agrees = fc.asyncProperty(steps, async (steps) => {
      const opened = await open();
      const model = new Model();
      let at = AT;
      try {
        for (const { afterMs, command } of steps) {
          at += afterMs;
          const outcome = await runOnStore(opened, command, at);
          expect(outcome).toStrictEqual(model.run(command, at, idOf(outcome)));
        }
      } finally {
        await opened.close();
      }
    });
    await fc.assert(agrees, { numRuns: 25 });
  }, 60_000);
}
