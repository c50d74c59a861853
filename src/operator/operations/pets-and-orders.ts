import { array, type Infer, line, nullable, object, queryIdentifier } from "../../api/schema.ts";
import { schemasOf } from "../../domain/fields.ts";
import {
  NewPet,
  OPERATOR_ORDER_FIELDS,
  ORDER_FILTERS,
  OrderUpdate,
  Pet,
  PET_FIELDS,
  PET_FILTERS,
  PetUpdate,
} from "../../domain/pets-and-orders.ts";
import { MAX_ROWS_SEARCHED, PET_SEARCH } from "../../domain/size-limits.ts";
import { created, cursor, limit, nextCursor, ok, tagged } from "./rows.ts";

export const PetPage = object("A page of pets, in ascending order of their identifiers", {
  items: array(Pet),
  nextCursor,
});

export const AdminOrder = object("An order with the API key that placed it", {
  ...schemasOf(OPERATOR_ORDER_FIELDS).required,
  petName: nullable(PET_FIELDS.name.schema, "Name of the pet"),
  keyName: nullable(line(100), "Name of the API key"),
});
export type AdminOrder = Infer<typeof AdminOrder>;

export const OrderPage = object("A page of orders, newest first", { items: array(AdminOrder), nextCursor });

/** The operations on pets. */
export const PET_OPERATIONS = tagged("Pets", {
  listPets: {
    method: "GET",
    path: "/pets",
    cost: 3,
    summary: "List the pets",
    description:
      "Lists pets in ascending order of their identifiers. A search looks at 20,000 pets for a page, so a page with few pets, or none, may have a `nextCursor`.",
    query: {
      search: line(200, "Text in the name, in any case; or the identifier"),
      ...PET_FILTERS,
      limit,
      cursor: cursor("pets"),
    },
    maxRowsRead: PET_SEARCH.maxSteps * PET_SEARCH.rowsPerStep,
    success: ok("A page of pets", PetPage),
  },
  createPet: {
    method: "POST",
    path: "/pets",
    audited: "pet.created",
    summary: "Add a pet",
    description: "Adds a pet. Clients see it within a second.",
    body: NewPet,
    success: created("The new pet", Pet),
  },
  getPet: {
    method: "GET",
    path: "/pets/{petId}",
    summary: "Show one pet",
    description: "Responds with the pet.",
    success: ok("The pet", Pet),
  },
  updatePet: {
    method: "PATCH",
    path: "/pets/{petId}",
    audited: "pet.updated",
    summary: "Correct a pet",
    description:
      "Changes the given fields. A pet with a placed order keeps its status: complete or cancel the order first. Clients see the change within a second.",
    body: PetUpdate,
    success: ok("The changed pet", Pet),
    errors: ["pet_ordered"],
    role: "support",
  },
  deletePet: {
    method: "DELETE",
    path: "/pets/{petId}",
    audited: "pet.deleted",
    summary: "Delete a pet that has no orders",
    description:
      "Deletes the pet for good. Clients get 404 for it within a second, and its identifier is never used again. A pet with orders is kept, because they name it.",
    success: { status: 204, description: "The pet is deleted" },
    errors: ["pet_has_orders"],
  },
});

/** The operations on orders, of whatever API key. */
export const ORDER_OPERATIONS = tagged("Orders", {
  listOrders: {
    method: "GET",
    path: "/orders",
    cost: 2,
    summary: "List the orders of all API keys",
    description:
      "Lists orders, newest first. With `petId` and other filters, a page looks at 5,000 orders of the pet: one with few orders, or none, may have a `nextCursor`.",
    query: {
      ...ORDER_FILTERS,
      keyId: queryIdentifier("Only orders of this API key"),
      petId: queryIdentifier("Only orders for this pet"),
      limit,
      cursor: cursor("orders"),
    },
    maxRowsRead: MAX_ROWS_SEARCHED,
    success: ok("A page of orders", OrderPage),
  },
  getOrder: {
    method: "GET",
    path: "/orders/{orderId}",
    summary: "Show one order",
    description: "Shows an order, whichever API key placed it. Orders of earlier releases may have no key.",
    success: ok("The order", AdminOrder),
  },
  updateOrder: {
    method: "PATCH",
    path: "/orders/{orderId}",
    audited: "order.updated",
    summary: "Complete or cancel an order of any API key",
    description:
      "An order that is `completed` makes its pet `sold`; one that is `cancelled` makes it `available` again. Both are final.",
    body: OrderUpdate,
    success: ok("The updated order", AdminOrder),
    errors: ["order_closed"],
    role: "support",
  },
});
