import { expect } from "bun:test";
import type { Attribution } from "../../src/domain/audit.ts";
import type { OperatorPetStore } from "../../src/domain/ports/pets-and-orders.ts";
import { AT, addPet, rejectionCode, resultOf, type TestCase } from "./store-fixture.ts";

const OWNER = 1;
const OTHER = 2;
const by: Attribution = { actor: { kind: "console" }, at: AT };

type Change = (operatorPetStore: OperatorPetStore, id: bigint) => Promise<object>;

/** What happens at once, in two processes. The model has the rest. */
export function orderCases(test: TestCase): void {
  test("placeOrder: of fifty concurrent orders of three keys for one pet one succeeds, and the others list none", async (opened) => {
    const { clientStore, another } = opened;
    const { clientStore: second } = await another();
    const petId = await addPet(clientStore);
    const place = (i: number) => (i % 2 ? clientStore : second).placeOrder({ keyId: 1 + (i % 3), petId }, AT);
    const results = await Promise.all(Array.from({ length: 50 }, (_, i) => place(i)));
    const rejections = results.map(rejectionCode).filter((code) => code !== undefined);
    expect(rejections).toEqual(Array.from({ length: 49 }, () => "pet_not_available"));
    const pages = await Promise.all([1, 2, 3].map((keyId) => clientStore.listOrders(keyId, { limit: 100 })));
    expect(pages.flatMap(({ items }) => items)).toHaveLength(1);
  });

  test("updateOrder: of concurrent updates one of its own key succeeds, and the pet's status follows it", async (opened) => {
    const { clientStore, operatorPetStore, another } = opened;
    const { clientStore: second } = await another();
    for (let round = 0; round < 10; round++) {
      const petId = await addPet(clientStore);
      const { id } = resultOf(await clientStore.placeOrder({ keyId: OWNER, petId }, AT));
      const [completed, others, cancelled] = await Promise.all([
        clientStore.updateOrder({ keyId: OWNER, id, status: "completed" }, AT),
        clientStore.updateOrder({ keyId: OTHER, id, status: "cancelled" }, AT),
        second.updateOrder({ keyId: OWNER, id, status: "cancelled" }, AT),
      ]);
      expect(rejectionCode(others)).toBe("order_not_found");
      const isCompleted = (await clientStore.getOrder(OWNER, id))?.status === "completed";
      expect([completed, cancelled].map(rejectionCode)).toEqual(
        isCompleted ? [undefined, "order_closed"] : ["order_closed", undefined],
      );
      expect((await operatorPetStore.getPet(petId))?.status).toBe(isCompleted ? "sold" : "available");
    }
  });

  const CHANGES: readonly [name: string, change: Change, statuses: object][] = [
    [
      "deleted",
      (operatorPetStore, id) => operatorPetStore.deletePet(id, by),
      { "undefined pet_has_orders": "pending", "pet_not_found undefined": undefined },
    ],
    [
      "sold",
      (operatorPetStore, id) => operatorPetStore.updatePet(id, { status: "sold" }, by),
      { "undefined pet_ordered": "pending", "pet_not_available undefined": "sold" },
    ],
  ];
  for (const [name, change, statuses] of CHANGES) {
    test(`a pet that is ordered and ${name} by an operator at once is one or the other`, async (opened) => {
      const { operatorPetStore } = await opened.another();
      for (let i = 0; i < 10; i++) {
        const petId = await addPet(opened.clientStore);
        const outcomes = await Promise.all([
          opened.clientStore.placeOrder({ keyId: OWNER, petId }, AT),
          change(operatorPetStore, petId),
        ]);
        const codes = outcomes.map((outcome) => String(rejectionCode(outcome))).join(" ");
        const pet = await opened.operatorPetStore.getPet(petId);
        expect(Object.entries(statuses)).toContainEqual([codes, pet?.status]);
      }
    });
  }
}
