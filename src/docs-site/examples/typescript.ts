import type { OperationId } from "../../domain/usage-history.ts";
import type { ExampleContext } from "./example.ts";
import { javascriptObject } from "./object-literal.ts";
import { EXAMPLE_REQUESTS } from "./requests.ts";

/** What the program does once it has a client. */
const CALLS: Readonly<Record<OperationId, string>> = {
  listPets: `const pets = petstore.pets.list({ status: "available", limit: 10 });
for await (const pet of pets) {
  console.log(pet.id, pet.name);
}`,
  createPet: `const pet = await petstore.pets.create(${argumentOf("createPet")});
console.log(pet.id, pet.name);`,
  getPet: `const pet = await petstore.pets.get(1);
console.log(pet.id, pet.name);`,
  listOrders: `const orders = petstore.orders.list({ status: "placed" });
for await (const order of orders) {
  console.log(order.id, order.petId, order.createdAt);
}`,
  placeOrder: `const order = await petstore.orders.place(${argumentOf("placeOrder")});
console.log(order.id, order.status);`,
  getOrder: `const order = await petstore.orders.get(1);
console.log(order.id, order.status);`,
  updateOrder: `const order = await petstore.orders.complete(1);
console.log(order.id, order.status);`,
};

export function typescriptProgram(operationId: OperationId, context: ExampleContext): string {
  return withClient(CALLS[operationId], context);
}

/** The program with a client named `petstore` in front. `imports` are further names of the package. */
export function withClient(
  program: string,
  { baseUrl, key }: ExampleContext,
  imports: readonly string[] = [],
): string {
  const names = [...imports, "Petstore"].join(", ");
  return `import { ${names} } from "@petstore/client";

const petstore = new Petstore({
  key: "${key}",
  baseUrl: "${baseUrl}",
});

${program}`;
}

function argumentOf(operationId: OperationId): string {
  return javascriptObject(EXAMPLE_REQUESTS[operationId].body ?? {}, 0);
}
