import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Rejection } from "../../src/api/errors.ts";
import { withEtag } from "../../src/runtime/etag.ts";
import { INT64_MAX, INT64_MIN, parseIdentifier } from "../../src/api/json.ts";
import { mapValues, type ResourceField, withChange } from "../../src/domain/fields.ts";
import type { NewAuditEntry } from "../../src/domain/audit.ts";
import {
  orderUpdateEntry,
  petCreationEntry,
  petDeletionEntry,
  petUpdateEntry,
} from "../../src/domain/pet-and-order-entries.ts";
import type {
  OperatorPetStore,
  IdempotencyRejection,
  IdempotentRequest,
  OrderPageQuery,
  OrderQuery,
  PetJsonSource,
  PetQuery,
  ClientStore,
  WriteResult,
} from "../../src/domain/ports/pets-and-orders.ts";
import { type Page, encodePage } from "../../src/domain/pages.ts";
import {
  encodeOrder,
  encodePet,
  GIVEN_PET_FIELDS,
  NewPet,
  type OperatorOrder,
  type Order,
  orderClosed,
  type OrderFilters,
  orderNotFound,
  type OrderStatus,
  type OrderUpdate,
  type Pet,
  type PetFilters,
  petNotAvailable,
  petNotFound,
  preconditionFailed,
  type PetStatus,
  type PetUpdate,
  petHasOrders,
  petOrdered,
} from "../../src/domain/pets-and-orders.ts";
import { IDEMPOTENCY_KEY_REUSED } from "../../src/domain/idempotency.ts";
import { addPet, AT, DAY_MS, type OpenStores, rex } from "./store-fixture.ts";

/** What the stores and the model have in common. */
interface Ports {
  readonly clientStore: Omit<ClientStore, "close">;
  readonly operatorPetStore: OperatorPetStore;
  readonly petJson: Pick<PetJsonSource, "get" | "list">;
}

/** Stores made of arrays that are searched from the front. */
class Model implements Ports {
  /** What the store has assigned to what is created next: it can skip numbers, but it grows. */
  nextId = 0n;
  /** Newest first. */
  readonly audit: NewAuditEntry[] = [];
  readonly #pets: Pet[] = [];
  /** The greatest identifier so far, also of pets that were deleted. */
  #lastPetId = 0n;
  readonly #orders: OperatorOrder[] = [];
  readonly #records = new Map<string, { at: number; fingerprint: string; result: WriteResult }>();

  readonly clientStore: Ports["clientStore"] = {
    createPet: async (pet, at, request) =>
      this.#runOnce("createPet", { at, request }, () => {
        const added = this.#addPet(pet);
        return { id: added.id, body: encodePet(added), replayed: false };
      }),
    listOrders: (keyId, query) => pageOf(this.#ordersOf(keyId), query),
    getOrder: (keyId, id) => this.#ordersOf(keyId).find((order) => order.id === id),
    placeOrder: async ({ keyId, petId }, at, request) =>
      this.#runOnce("placeOrder", { at, request }, () => {
        const pet = this.#pet(petId);
        if (pet === undefined) return petNotFound(petId);
        if (pet.status === "pending" || pet.status === "sold") return petNotAvailable(petId, pet.status);
        const id = this.nextId;
        expect(id).toBeGreaterThan(this.#orders.at(-1)?.id ?? 0n);
        this.#replacePet({ ...pet, status: "pending" });
        const order: Order = { id, petId, status: "placed", createdAt: new Date(at).toISOString() };
        this.#orders.push({ ...order, keyId, closedAt: null });
        return { id, body: encodeOrder(order), replayed: false };
      }),
    updateOrder: async ({ keyId, id, status, ifMatch = "*" }, at) => {
      const own = this.#ordersOf(keyId).find((order) => order.id === id);
      if (own === undefined) return orderNotFound(id);
      if (own.status !== status && ifMatch !== "*") return preconditionFailed(id);
      const updated = this.#setOrderStatus(id, status, at);
      return "code" in updated ? updated : publicOrder(updated);
    },
  };

  readonly operatorPetStore: Ports["operatorPetStore"] = {
    listPets: (query) => pageOf(this.#pets, query),
    getPet: (id) => this.#pet(id),
    searchPets: (text, { limit, ids: _ids, ...query }) => {
      const pets = this.#pets.filter(({ id }) => id > (query.after ?? 0n)).slice(0, 1_000);
      const isMatch = ({ name }: Pet) => name.toLowerCase().includes(text.toLowerCase());
      const { after: _after, ...filters } = query;
      const matching = pets.filter((pet) => isMatch(pet) && hasValues(pet, filters));
      return { items: matching.slice(0, limit), hasMore: matching.length > limit };
    },
    listOrders: ({ before = INT64_MAX, limit, ...filters }) => {
      const matching = this.#orders.filter((order) => order.id < before && hasValues(order, filters));
      return { items: matching.toReversed().slice(0, limit), hasMore: matching.length > limit };
    },
    getOrder: (id) => this.#orders.find((order) => order.id === id),
    updateOrder: async (id, status, by) => {
      const before = this.#orders.find((order) => order.id === id);
      const updated = this.#setOrderStatus(id, status, by.at);
      if (!("code" in updated) && updated !== before) this.audit.unshift(orderUpdateEntry(id, status, by));
      return updated;
    },
    createPet: async (pet, by) => {
      const added = this.#addPet(pet);
      this.audit.unshift(petCreationEntry(added, by));
      return added;
    },
    updatePet: async (id, change, by) => {
      const pet = this.#pet(id);
      if (pet === undefined) return petNotFound(id);
      const changed: Pet = withChange(pet, change);
      const entry = petUpdateEntry(pet, changed, by);
      if (entry === undefined) return pet;
      const placed = this.#orders.find((order) => order.petId === id && order.status === "placed");
      if (placed !== undefined && changed.status !== pet.status) return petOrdered(id, placed.id);
      this.#replacePet(changed);
      this.audit.unshift(entry);
      return changed;
    },
    deletePet: async (id, by) => {
      const pet = this.#pet(id);
      if (pet === undefined) return petNotFound(id);
      const latest = this.#orders.findLast(({ petId }) => petId === id);
      if (latest !== undefined) return petHasOrders(id, latest.id);
      this.#pets.splice(this.#pets.indexOf(pet), 1);
      this.audit.unshift(petDeletionEntry(pet, by));
      return pet;
    },
  };

  readonly petJson: Ports["petJson"] = {
    list: (query) => encodePage(pageOf(this.#pets, query), encodePet),
    get: (id) => {
      const pet = this.#pet(BigInt(id));
      return pet && withEtag(encodePet(pet));
    },
  };

  #pet(id: bigint): Pet | undefined {
    return this.#pets.find((pet) => pet.id === id);
  }

  #addPet(pet: NewPet): Pet {
    expect(this.nextId).toBeGreaterThan(this.#lastPetId);
    this.#lastPetId = this.nextId;
    const added = { ...pet, id: this.nextId };
    this.#pets.push(added);
    return added;
  }

  #replacePet(pet: Pet): void {
    this.#pets[this.#pets.findIndex(({ id }) => id === pet.id)] = pet;
  }

  #ordersOf(keyId: number): Order[] {
    return this.#orders.filter((order) => order.keyId === keyId).map(publicOrder);
  }

  #setOrderStatus(id: bigint, status: OrderUpdate["status"], at: number) {
    const index = this.#orders.findIndex((order) => order.id === id);
    const order = this.#orders[index];
    if (order === undefined) return orderNotFound(id);
    if (order.status === status) return order;
    if (order.status !== "placed") return orderClosed(id, order.status);
    const pet = this.#pet(order.petId);
    if (pet) this.#replacePet({ ...pet, status: status === "completed" ? "sold" : "available" });
    const closed = { ...order, status, closedAt: new Date(at).toISOString() };
    this.#orders[index] = closed;
    return closed;
  }

  #runOnce<Code extends string = never>(
    operation: string,
    { at, request }: { at: number; request: IdempotentRequest | undefined },
    work: () => WriteResult | Rejection<Code>,
  ): WriteResult | Rejection<Code> | IdempotencyRejection {
    if (request === undefined) return work();
    const name = `${operation} ${request.keyId} ${request.idempotencyKey}`;
    const record = this.#records.get(name);
    if (record !== undefined && at - record.at < DAY_MS) {
      if (record.fingerprint !== request.fingerprint) return IDEMPOTENCY_KEY_REUSED;
      return { ...record.result, replayed: true };
    }
    const result = work();
    if (!("code" in result)) this.#records.set(name, { at, fingerprint: request.fingerprint, result });
    return result;
  }
}

function publicOrder({ id, petId, status, createdAt }: OperatorOrder): Order {
  return { id, petId, status, createdAt };
}

type ListQuery = Pick<PetQuery, "after" | "limit" | "ids">;

function pageOf<T extends { id: bigint }>(items: T[], query: ListQuery): Page<T> {
  const { after = 0n, ids, limit, ...filters } = query;
  const matching = items.filter(
    (item) => item.id > after && (ids === undefined || ids.includes(item.id)) && hasValues(item, filters),
  );
  return { items: matching.slice(0, limit), hasMore: matching.length > limit };
}

function hasValues(item: object, filters: object): boolean {
  return Object.entries(filters).every(([name, value]) => Reflect.get(item, name) === value);
}

/** A call of a port, with its arguments for the report of a failure. */
interface Call {
  readonly given: object;
  run(ports: Ports, at: number): unknown;
}

function callOf<Given extends object>(
  given: { readonly [Name in keyof Given]: fc.Arbitrary<Given[Name]> },
  run: (ports: Ports, given: Given, at: number) => unknown,
): fc.Arbitrary<Call> {
  return fc
    .record<Given>(given)
    .map((values) => ({ given: values, run: (ports: Ports, at: number) => run(ports, values, at) }));
}

const petStatus = fc.constantFrom<PetStatus>("available", "pending", "sold");
const orderStatus = fc.constantFrom<OrderStatus>("placed", "completed", "cancelled");
const ifMatch = fc.constantFrom(undefined, "*", '"the ETag of nothing"');
const finalStatus = fc.constantFrom("completed" as const, "cancelled" as const);
const categoryId = fc.bigInt({ min: -1n, max: 1n });
const keyId = fc.constantFrom(1, 1, 1, Number.MAX_SAFE_INTEGER);
const request = fc.option(
  fc.record({
    keyId,
    idempotencyKey: fc.constantFrom("a", "A", `'; DROP TABLE pets; -- $1 {NULL},"\\%s`),
    fingerprint: fc.constantFrom("1".repeat(64), "2".repeat(64)),
  }),
  { nil: undefined },
);

/** Few values, so that a change often changes nothing, or any value that the schema allows. */
function valueOf({ schema }: ResourceField, range: "few" | "any"): fc.Arbitrary<unknown> {
  const isFew = range === "few";
  switch (schema.kind) {
    case "choice":
      return fc.constantFrom(...schema.choices);
    case "int64":
      return fc.bigInt(isFew ? { min: -1n, max: 1n } : { min: INT64_MIN, max: INT64_MAX });
    case "integer":
      return isFew ? fc.constantFrom(schema.min, schema.max) : fc.integer(schema);
    case "text":
      return isFew
        ? fc.constantFrom("Rex", "Rover")
        : fc.string({ unit: "binary", minLength: 1, maxLength: 20 }).filter((text) => !text.includes("\0"));
    default:
      throw new Error(`no values of the kind ${schema.kind}`);
  }
}

// The record has the fields from which the types are derived.
const pet = fc.record(
  mapValues(GIVEN_PET_FIELDS, (field) => valueOf(field, "any")),
  { requiredKeys: Object.keys(NewPet.required) as (keyof NewPet)[] },
) as fc.Arbitrary<NewPet>;
const change = fc.record(
  mapValues(GIVEN_PET_FIELDS, (field) => {
    const values = valueOf(field, "few");
    return field.ifMissing === "absent" ? fc.option(values, { nil: null }) : values;
  }),
  { requiredKeys: [] },
) as fc.Arbitrary<PetUpdate>;
type FilterValues<Filters> = {
  readonly [Name in keyof Filters]-?: fc.Arbitrary<NonNullable<Filters[Name]>>;
};
/** A filter without values does not compile. */
const petFilters: FilterValues<PetFilters> = { categoryId, status: petStatus };
const orderFilters: FilterValues<OrderFilters> = { status: orderStatus };
const by = (at: number) => ({ actor: { kind: "console" }, at }) as const;

/** Few identifiers, so that calls affect each other. */
function callsWith(largestId: bigint, largestLimit: number): fc.Arbitrary<Call> {
  const id = fc.oneof(
    { weight: 20, arbitrary: fc.bigInt({ min: 1n, max: largestId }) },
    { weight: 1, arbitrary: fc.constantFrom(INT64_MIN, -1n, 0n, INT64_MAX) },
  );
  const ids = fc.uniqueArray(id).map((some) => some.toSorted((a, b) => (a < b ? -1 : 1)));
  const limit = fc.integer({ min: 1, max: largestLimit });
  const paged: { requiredKeys: ["limit"] } = { requiredKeys: ["limit"] };
  const petQuery: fc.Arbitrary<PetQuery> = fc.record({ limit, after: id, ids, ...petFilters }, paged);
  const plainQuery: fc.Arbitrary<PetQuery> = fc.record({ limit, after: id }, paged);
  const ordersOfKey: fc.Arbitrary<OrderPageQuery> = fc.record({ limit, after: id, ...orderFilters }, paged);
  const orderQuery: fc.Arbitrary<OrderQuery> = fc.record(
    { limit, before: id, ...orderFilters, keyId, petId: id },
    paged,
  );
  const listJson = callOf({ query: fc.oneof(petQuery, plainQuery) }, async ({ petJson }, { query }) => {
    const { json, last, hasMore } = await petJson.list(query);
    return { json, last, hasMore };
  });
  const getJson = callOf({ id }, ({ petJson }, given) =>
    petJson.get(parseIdentifier(String(given.id)) ?? given.id),
  );
  return fc.oneof(
    callOf({ pet, request }, ({ clientStore }, given, at) =>
      clientStore.createPet(given.pet, at, given.request),
    ),
    callOf({ keyId, petId: id, request }, ({ clientStore }, given, at) =>
      clientStore.placeOrder(given, at, given.request),
    ),
    callOf({ keyId, id, status: finalStatus, ifMatch }, ({ clientStore }, update, at) =>
      clientStore.updateOrder(update, at),
    ),
    callOf({ id }, ({ operatorPetStore }, given) => operatorPetStore.getPet(given.id)),
    callOf({ keyId, id }, ({ clientStore }, given) => clientStore.getOrder(given.keyId, given.id)),
    callOf({ query: petQuery }, ({ operatorPetStore }, { query }) => operatorPetStore.listPets(query)),
    callOf({ keyId, query: ordersOfKey }, ({ clientStore }, given) =>
      clientStore.listOrders(given.keyId, given.query),
    ),
    callOf({ pet }, ({ operatorPetStore }, given, at) => operatorPetStore.createPet(given.pet, by(at))),
    callOf({ id, change }, ({ operatorPetStore }, given, at) =>
      operatorPetStore.updatePet(given.id, given.change, by(at)),
    ),
    callOf({ id }, ({ operatorPetStore }, given, at) => operatorPetStore.deletePet(given.id, by(at))),
    callOf({ id, status: finalStatus }, ({ operatorPetStore }, given, at) =>
      operatorPetStore.updateOrder(given.id, given.status, by(at)),
    ),
    callOf({ id }, ({ operatorPetStore }, given) => operatorPetStore.getOrder(given.id)),
    callOf({ query: orderQuery }, ({ operatorPetStore }, { query }) => operatorPetStore.listOrders(query)),
    { weight: 4, arbitrary: listJson },
    { weight: 4, arbitrary: getJson },
  );
}

/** Names that could be taken for a part of the JSON around them. */
const NAMES = ["Rex", 'Q"uote\\', '\\"\n\u2028\u007f/<', "🐈‍⬛ and more", ',{"id":7,', '"},{"id":'];

/**
 * On a slow machine the property ends by itself, before the limit of the test: a case that went on beyond it would
 * write to the data of the tests that follow, and its own error would be lost among theirs.
 */
const MAX_PROPERTY_MS = 40_000;

/** In one of the tests there are enough pets for the blocks in which SQLite caches them. */
export function modelCases(open: OpenStores): void {
  test.each([
    [0, 4n, 3],
    [200, 220n, 100],
  ] as const)(
    "with %i pets at first, any calls have the outcomes and the audit trail of a model made of arrays",
    async (count, largestId, largestLimit) => {
      const pets = Array.from({ length: count }, (_, i) => ({ ...rex, name: NAMES[i % NAMES.length] ?? "" }));
      const afterMs = fc.constantFrom(0, 0, 0, 1, DAY_MS / 2, DAY_MS);
      const step = fc.record({ afterMs, call: callsWith(largestId, largestLimit) });
      const steps = fc.array(step, { minLength: 40, maxLength: 100, size: "max" });
      const endsAt = performance.now() + MAX_PROPERTY_MS;
      const agrees = fc.asyncProperty(steps, async (steps) => {
        if (performance.now() > endsAt) return;
        const opened = await open();
        const model = new Model();
        let at = AT;
        try {
          const ids = await Promise.all(pets.map((pet) => addPet(opened.clientStore, pet)));
          for (const [i, pet] of pets.entries()) {
            model.nextId = ids[i] ?? 0n;
            await model.clientStore.createPet(pet, at);
          }
          for (const { afterMs, call } of steps) {
            if (performance.now() > endsAt) return;
            at += afterMs;
            if (afterMs > 0) await opened.pass?.(afterMs);
            const outcome = await call.run(opened, at);
            model.nextId = idOf(outcome);
            expect(outcome).toStrictEqual(await call.run(model, at));
          }
          const { items } = await opened.audit.listAudit({ limit: 1_000 });
          const entries = model.audit.map((entry, i) => Object.assign({ id: items[i]?.id }, entry));
          expect<unknown>(items).toStrictEqual(entries);
        } finally {
          await opened.close();
        }
      });
      await fc.assert(agrees, { numRuns: 15 });
    },
    60_000,
  );
}

/** The identifier in an outcome of the store. */
function idOf(outcome: unknown): bigint {
  const hasId = typeof outcome === "object" && outcome !== null && "id" in outcome;
  return hasId ? BigInt(String(outcome.id)) : 0n;
}
