import type { NewPet } from "../../src/domain/pets-and-orders.ts";
import type { Server } from "./server.ts";

/** Their identifiers are 1 to 14. Requests that add more have names in the record, not numbers. */
const PETS: readonly NewPet[] = [
  { name: "Rex", categoryId: 7n, status: "available" },
  { name: "Mia", categoryId: 7n },
  { name: "Tom", categoryId: -9_223_372_036_854_775_808n, status: "pending" },
  { name: "Kim", categoryId: 9_007_199_254_740_993n, status: "sold" },
  ...Array.from({ length: 10 }, (_, i) => ({ name: `Pet ${i + 5}`, categoryId: BigInt(i) })),
];

/** The orders by identifier, 1 to 7. */
const ORDERS = [
  { key: "main", petId: 5n, status: "placed" },
  { key: "main", petId: 6n, status: "completed" },
  { key: "main", petId: 7n, status: "placed" },
  { key: "main", petId: 8n, status: "placed" },
  { key: "lister", petId: 12n, status: "placed" },
  { key: "lister", petId: 13n, status: "completed" },
  { key: "lister", petId: 14n, status: "cancelled" },
] as const;

export async function addPetsAndOrders(server: Server): Promise<void> {
  const { clientStore } = server.adapters;
  const at = server.clock.now();
  for (const pet of PETS) await clientStore.createPet(pet, at);
  for (const [i, { key, petId, status }] of ORDERS.entries()) {
    const keyId = server.idOfKey(key);
    await clientStore.placeOrder({ keyId, petId }, at);
    if (status !== "placed") await clientStore.updateOrder({ keyId, id: BigInt(i + 1), status }, at);
  }
}
