import { expect } from "bun:test";
import { INT64_MAX } from "../../src/api/json.ts";
import type { Attribution, NewAuditEntry } from "../../src/domain/audit.ts";
import type { AuditStore, Store } from "../../src/domain/ports.ts";
import { addPet, AT, idsOf, rejectionCode, resultOf, type TestCase } from "./store-fixture.ts";

const by: Attribution = { actor: { kind: "console", name: "127.0.0.1" }, at: AT };

async function placeOrder(store: Store, petId: bigint, keyId = 1): Promise<bigint> {
  return resultOf(await store.placeOrder({ keyId, petId }, AT)).id;
}

/** Newest first, without their identifiers. */
async function auditTrail(audit: AuditStore): Promise<NewAuditEntry[]> {
  const { items } = await audit.listAudit({ limit: 100 });
  return items.map(({ id, ...entry }) => {
    expect(id).toBeGreaterThan(0n);
    return entry;
  });
}

/** What every CorrectionStore does, on whatever database. */
export function correctionStoreConformance(test: TestCase): void {
  petUpdateCases(test);
  petDeletionCases(test);
  orderUpdateCases(test);
  orderPageCases(test);
  concurrencyCases(test);
}

function petUpdateCases(test: TestCase): void {
  test("createPet adds a pet, with its audit entry", async ({ store, corrections, audit }) => {
    const created = await corrections.createPet({ name: "Rex", categoryId: INT64_MAX, status: "sold" }, by);
    expect(await store.getPet(created.id)).toStrictEqual(created);
    const after = { name: "Rex", categoryId: `${INT64_MAX}`, status: "sold" };
    const target = { kind: "pet", id: created.id } as const;
    expect(await auditTrail(audit)).toStrictEqual([{ ...by, action: "pet.created", target, after }]);
    expect((await corrections.createPet({ name: "Mia", categoryId: 1n }, by)).id).toBe(created.id + 1n);
  });

  test("updatePet changes the given fields, and the audit entry has those that changed", async (opened) => {
    const { store, corrections, audit } = opened;
    const id = await addPet(store, { categoryId: INT64_MAX });
    const updated = { id, name: 'R"éx 🐕', categoryId: -7n, status: "sold" } as const;
    expect(
      await corrections.updatePet(id, { name: updated.name, categoryId: -7n, status: "sold" }, by),
    ).toEqual(updated);
    expect(await store.getPet(id)).toStrictEqual(updated);
    expect(await corrections.updatePet(id, { status: null }, { ...by, at: AT + 1 })).toStrictEqual({
      id,
      name: updated.name,
      categoryId: -7n,
    });
    expect(await store.getPet(id)).toStrictEqual({ id, name: updated.name, categoryId: -7n });
    const target = { kind: "pet", id } as const;
    expect(await auditTrail(audit)).toStrictEqual([
      {
        at: AT + 1,
        actor: by.actor,
        action: "pet.updated",
        target,
        before: { status: "sold" },
        after: { status: null },
      },
      {
        ...by,
        action: "pet.updated",
        target,
        before: { name: "Rex", categoryId: "9223372036854775807", status: "available" },
        after: { name: updated.name, categoryId: "-7", status: "sold" },
      },
    ]);
  });

  test("updatePet: a change that changes nothing and one of a pet that does not exist have no audit entry", async (opened) => {
    const { store, corrections, audit } = opened;
    const id = await addPet(store);
    const pet = { id, name: "Rex", categoryId: 7n, status: "available" } as const;
    for (const change of [
      {},
      { name: "Rex" },
      { name: "Rex", categoryId: 7n, status: "available" } as const,
    ]) {
      expect(await corrections.updatePet(id, change, by)).toEqual(pet);
    }
    for (const other of [0n, -1n, 99n, INT64_MAX]) {
      expect(rejectionCode(await corrections.updatePet(other, { name: "x" }, by))).toBe("pet_not_found");
      expect(rejectionCode(await corrections.updateOrder(other, "completed", by))).toBe("order_not_found");
      expect(await corrections.getOrder(other)).toBeUndefined();
    }
    expect(await auditTrail(audit)).toEqual([]);
  });

  test("updatePet pet_ordered: a pet with a placed order keeps its status, and its other fields can change", async (opened) => {
    const { store, corrections, audit } = opened;
    const id = await addPet(store);
    const orderId = await placeOrder(store, id);
    for (const status of ["available", "sold", null] as const) {
      expect(await corrections.updatePet(id, { name: "Rover", status }, by)).toEqual({
        code: "pet_ordered",
        message: `Pet ${id} has the placed order ${orderId} and keeps its status. Complete or cancel the order first.`,
      });
    }
    expect(await auditTrail(audit)).toEqual([]);
    const renamed = await corrections.updatePet(id, { name: "Rover", status: "pending" }, by);
    expect(renamed).toMatchObject({ name: "Rover", status: "pending" });
    await store.updateOrder({ keyId: 1, id: orderId, status: "completed" }, AT);
    expect(await corrections.updatePet(id, { status: "available" }, by)).toMatchObject({
      status: "available",
    });
    expect(await placeOrder(store, id)).toBeGreaterThan(orderId);
  });
}

function petDeletionCases(test: TestCase): void {
  test("deletePet returns the pet, records it, and its identifier is not used again", async (opened) => {
    const { store, corrections, audit } = opened;
    const first = await addPet(store);
    const last = await addPet(store, { name: "Rover" });
    const pet = { id: last, name: "Rover", categoryId: 7n, status: "available" } as const;
    expect(await corrections.deletePet(last, by)).toEqual(pet);
    expect(await store.getPet(last)).toBeUndefined();
    expect(await store.listPets({ limit: 1 })).toMatchObject({ items: [{ id: first }], hasMore: false });
    expect(rejectionCode(await store.placeOrder({ keyId: 1, petId: last }, AT))).toBe("pet_not_found");
    expect(rejectionCode(await corrections.deletePet(last, by))).toBe("pet_not_found");
    expect(await addPet(store)).toBeGreaterThan(last);
    expect(await auditTrail(audit)).toStrictEqual([
      {
        ...by,
        action: "pet.deleted",
        target: { kind: "pet", id: last },
        before: { name: "Rover", categoryId: "7", status: "available" },
      },
    ]);
  });

  test("deletePet pet_has_orders: a pet that was ordered is kept, whatever became of the order", async (opened) => {
    const { store, corrections, audit } = opened;
    const id = await addPet(store);
    const first = await placeOrder(store, id);
    const rejection = (orderId: bigint) => ({
      code: "pet_has_orders" as const,
      message: `Pet ${id} has orders and cannot be deleted. The latest is order ${orderId}.`,
    });
    expect(await corrections.deletePet(id, by)).toEqual(rejection(first));
    await store.updateOrder({ keyId: 1, id: first, status: "cancelled" }, AT);
    expect(await corrections.deletePet(id, by)).toEqual(rejection(first));
    const second = await placeOrder(store, id, 2);
    await store.updateOrder({ keyId: 2, id: second, status: "completed" }, AT);
    expect(await corrections.deletePet(id, by)).toEqual(rejection(second));
    expect(await store.getPet(id)).toMatchObject({ status: "sold" });
    expect(await auditTrail(audit)).toEqual([]);
  });

  test("deletePet: the stored response of its creation is still repeated", async ({ store, corrections }) => {
    const request = { keyId: 1, idempotencyKey: "a", fingerprint: "f".repeat(64) };
    const pet = { name: "Rex", categoryId: 7n };
    const created = resultOf(await store.createPet(pet, AT, request));
    await corrections.deletePet(created.id, by);
    expect(await store.createPet(pet, AT, request)).toEqual({ ...created, replayed: true });
  });
}

function orderUpdateCases(test: TestCase): void {
  for (const [status, petStatus] of [
    ["completed", "sold"],
    ["cancelled", "available"],
  ] as const) {
    test(`updateOrder: ${status} makes the pet ${petStatus}, for an order of any key`, async (opened) => {
      const { store, corrections, audit } = opened;
      const petId = await addPet(store);
      const id = await placeOrder(store, petId, 5);
      const times = { createdAt: "2026-11-15T09:30:00.000Z", closedAt: "2026-11-15T09:30:00.007Z" };
      const order = { id, petId, keyId: 5, status, ...times };
      expect(await corrections.getOrder(id)).toMatchObject({ closedAt: null });
      expect(await corrections.updateOrder(id, status, { ...by, at: AT + 7 })).toEqual(order);
      expect(await corrections.getOrder(id)).toStrictEqual(order);
      expect(await store.getOrder(5, id)).toMatchObject({ status });
      expect(await store.getPet(petId)).toMatchObject({ status: petStatus });
      expect(rejectionCode(await corrections.updateOrder(id, "cancelled", by))).toBe("order_closed");
      expect(await auditTrail(audit)).toStrictEqual([
        {
          ...by,
          at: AT + 7,
          action: "order.updated",
          target: { kind: "order", id },
          before: { status: "placed" },
          after: { status },
        },
      ]);
    });
  }
}

function orderPageCases(test: TestCase): void {
  test("listOrders: `hasMore` is exact, and `before` skips that order and all after it, for every int64", async (opened) => {
    const { store, corrections } = opened;
    const ids: bigint[] = [];
    for (let n = 0; n < 3; n++) ids.push(await placeOrder(store, await addPet(store)));
    const [first = 0n, second = 0n, third = 0n] = ids;
    const list = async (before: bigint, limit: number) => {
      const page = await corrections.listOrders({ before, limit });
      return [idsOf(page), page.hasMore];
    };
    expect(await list(third, 1)).toEqual([[second], true]);
    expect(await list(third, 2)).toEqual([[second, first], false]);
    expect(await list(first, 2)).toEqual([[], false]);
    expect(await list(-(2n ** 63n), 2)).toEqual([[], false]);
    expect((await list(INT64_MAX, 100))[0]).toHaveLength(3);
  });
}

function concurrencyCases(test: TestCase): void {
  test("a pet that is ordered and deleted at once, in two processes, ends as one or the other", async (opened) => {
    const other = await opened.another();
    for (let i = 0; i < 10; i++) {
      const id = await addPet(opened.store);
      const [placed, deleted] = await Promise.all([
        opened.store.placeOrder({ keyId: 1, petId: id }, AT),
        other.corrections.deletePet(id, by),
      ]);
      const outcome = [rejectionCode(placed), rejectionCode(deleted)];
      expect([
        [undefined, "pet_has_orders"],
        ["pet_not_found", undefined],
      ]).toContainEqual(outcome);
      expect((await opened.store.getPet(id)) === undefined).toBe(outcome[1] === undefined);
    }
  });

  test("a pet that is ordered and corrected at once, in two processes, has the status of its order", async (opened) => {
    const other = await opened.another();
    for (let i = 0; i < 10; i++) {
      const id = await addPet(opened.store);
      const [placed, updated] = await Promise.all([
        opened.store.placeOrder({ keyId: 1, petId: id }, AT),
        other.corrections.updatePet(id, { status: "sold" }, by),
      ]);
      const outcome = [rejectionCode(placed), rejectionCode(updated)];
      expect([
        [undefined, "pet_ordered"],
        ["pet_not_available", undefined],
      ]).toContainEqual(outcome);
      expect(await opened.store.getPet(id)).toMatchObject({
        status: outcome[0] === undefined ? "pending" : "sold",
      });
    }
  });
}
