import { OrderStatus, OrderUpdate, Pet, PetStatus } from "../../domain/resources.ts";
import { queryIdentifier } from "../../api/schema.ts";
import { type AdminOperation, BODY_ERRORS, cursor, limit, ok } from "./operation.ts";
import { AdminOrder, OrderPage, PetPage, PetUpdate } from "./resources.ts";

const PET_ID = { name: "petId", notFound: "pet_not_found", description: "Identifier of the pet" } as const;
const ORDER_ID = {
  name: "orderId",
  notFound: "order_not_found",
  description: "Identifier of the order",
} as const;

/** Pets and orders. */
export const STORE_OPERATIONS = {
  listPets: {
    method: "GET",
    path: "/pets",
    tag: "Pets",
    summary: "List pets",
    description: "Lists pets in ascending order of their identifiers.",
    query: { status: PetStatus, limit, cursor: cursor("pets") },
    success: ok("A page of pets", PetPage),
    errors: ["invalid_parameter"],
  },
  getPet: {
    method: "GET",
    path: "/pets/{petId}",
    tag: "Pets",
    summary: "Fetch one pet",
    description: "Responds with the pet.",
    identifier: PET_ID,
    success: ok("The pet", Pet),
    errors: ["pet_not_found"],
  },
  updatePet: {
    method: "PATCH",
    path: "/pets/{petId}",
    tag: "Pets",
    summary: "Correct a pet",
    description:
      "Changes the given fields. The status of a pet with a placed order follows the order and cannot be changed here.",
    identifier: PET_ID,
    body: PetUpdate,
    success: ok("The changed pet", Pet),
    errors: [...BODY_ERRORS, "pet_not_found", "pet_ordered"],
  },
  deletePet: {
    method: "DELETE",
    path: "/pets/{petId}",
    tag: "Pets",
    summary: "Delete a pet",
    description: "Deletes a pet without orders. Its identifier is never used again.",
    identifier: PET_ID,
    success: { status: 204, description: "The pet is deleted" },
    errors: ["pet_not_found", "pet_has_orders"],
  },
  listOrders: {
    method: "GET",
    path: "/orders",
    tag: "Orders",
    summary: "List orders of all API keys",
    description: "Lists orders, newest first.",
    query: {
      status: OrderStatus,
      keyId: queryIdentifier({ description: "Only orders of this API key" }),
      petId: queryIdentifier({ description: "Only orders for this pet" }),
      limit,
      cursor: cursor("orders"),
    },
    success: ok("A page of orders", OrderPage),
    errors: ["invalid_parameter"],
  },
  getOrder: {
    method: "GET",
    path: "/orders/{orderId}",
    tag: "Orders",
    summary: "Fetch one order",
    description: "Responds with the order, whichever API key placed it.",
    identifier: ORDER_ID,
    success: ok("The order", AdminOrder),
    errors: ["order_not_found"],
  },
  updateOrder: {
    method: "PATCH",
    path: "/orders/{orderId}",
    tag: "Orders",
    summary: "Complete or cancel an order",
    description: "`completed` makes the pet `sold`. `cancelled` makes it `available` again. Both are final.",
    identifier: ORDER_ID,
    body: OrderUpdate,
    success: ok("The updated order", AdminOrder),
    errors: [...BODY_ERRORS, "order_not_found", "order_closed"],
  },
} as const satisfies Record<string, AdminOperation>;
