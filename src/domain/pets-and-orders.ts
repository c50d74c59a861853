/* What is marked as pure is left out of the console's script, which does not use it. */

import { NAME_MAX_LENGTH } from "./size-limits.ts";
import {
  dateTime,
  type Infer,
  int64,
  nullable,
  object,
  oneOf,
  queryIdentifier,
  type Schema,
  text,
  updateSchema,
} from "../api/schema.ts";
import { Rejection } from "../api/errors.ts";
import type { Identifier } from "../api/json.ts";
import {
  changeSchemasOf,
  type ClientFields,
  encoderOf,
  type Fields,
  EXAMPLE_TIME,
  givenFieldsOf,
  schemasOf,
} from "./fields.ts";
import { KeyId } from "./key-fields.ts";

export const PET_STATUSES = ["available", "pending", "sold"] as const;
export const PetStatus = oneOf(PET_STATUSES, "Availability of the pet");
export type PetStatus = Infer<typeof PetStatus>;

/** The fields of a pet. */
export const PET_FIELDS = {
  id: {
    schema: int64({ description: "Unique identifier assigned by the service on creation", examples: [1] }),
    storedAs: "int64",
    setBy: "service",
  },
  name: {
    schema: text(NAME_MAX_LENGTH, { description: "The pet's name", examples: ["Rex"] }),
    storedAs: "text",
  },
  categoryId: {
    schema: int64({
      description: "Identifier of the category the pet belongs to; any int64",
      examples: [7],
    }),
    storedAs: "int64",
  },
  status: { schema: PetStatus, storedAs: "choice", ifMissing: "absent" },
} as const satisfies ClientFields;

/** The fields that a client sends and an operator can change. */
export const GIVEN_PET_FIELDS = givenFieldsOf(PET_FIELDS);

const newPet = schemasOf(GIVEN_PET_FIELDS);
export const NewPet = object("A pet to add.", newPet.required, newPet.optional);
export type NewPet = Infer<typeof NewPet>;

const pet = schemasOf(PET_FIELDS);
export const Pet = object(
  "A pet. A pet that was created without a status has no `status` until it is ordered.",
  pet.required,
  pet.optional,
);
export type Pet = Infer<typeof Pet>;

export const encodePet: (pet: Pet) => string = /* @__PURE__ */ encoderOf(PET_FIELDS);

export const PetUpdate = updateSchema(
  "The fields to change, at least one",
  changeSchemasOf(GIVEN_PET_FIELDS),
);
export type PetUpdate = Infer<typeof PetUpdate>;

/**
 * The filters of a list of pets: fields with the schemas of their query parameters. Both APIs, both databases, the link
 * to the next page and the flags of the command line have them. For each combination of them there is an index, so that
 * the cost of a page does not depend on what the other pets are.
 */
export const PET_FILTERS = {
  categoryId: queryIdentifier("Only pets of this category"),
  status: PetStatus,
} satisfies FilterSchemas<Pet>;
export type PetFilters = FiltersOf<typeof PET_FILTERS>;
type FilterSchemas<T> = { readonly [K in keyof T]?: Schema<NonNullable<T[K]>> };
type FiltersOf<T> = { readonly [K in keyof T]?: Infer<T[K]> | undefined };

export const ORDER_STATUSES = ["placed", "completed", "cancelled"] as const;
export const OrderStatus = oneOf(ORDER_STATUSES, "Status of the order");
export type OrderStatus = Infer<typeof OrderStatus>;

const FINAL_ORDER_STATUSES = ["completed", "cancelled"] as const;
export const OrderUpdate = object("The final status of an order.", {
  status: oneOf(FINAL_ORDER_STATUSES, "The final status of the order"),
});
export type OrderUpdate = Infer<typeof OrderUpdate>;

/** The fields of an order, for the key that placed it. */
export const ORDER_FIELDS = {
  id: {
    schema: int64({ description: "Unique identifier assigned by the service", examples: [1] }),
    storedAs: "int64",
    setBy: "service",
  },
  petId: {
    schema: int64({ description: "Identifier of the pet", examples: [1] }),
    storedAs: "int64",
  },
  status: { schema: OrderStatus, storedAs: "choice", setBy: "service" },
  createdAt: {
    // Within /v1, the OpenAPI document stays as it was: it has the bounds of a text.
    schema: {
      ...dateTime(),
      json: text(40, {
        format: "date-time",
        description: "When the order was placed (RFC 3339, UTC)",
        examples: [EXAMPLE_TIME],
      }).json,
    },
    storedAs: "time",
    setBy: "service",
  },
} as const satisfies ClientFields;

export const NewOrder = object("An order to place.", schemasOf(givenFieldsOf(ORDER_FIELDS)).required);
export type NewOrder = Infer<typeof NewOrder>;

export const Order = object(
  "An order for one pet. It belongs to the API key that placed it.",
  schemasOf(ORDER_FIELDS).required,
);
export type Order = Infer<typeof Order>;

export const encodeOrder: (order: Order) => string = /* @__PURE__ */ encoderOf(ORDER_FIELDS);

/** The fields of an order for operators. Earlier releases recorded neither its key nor when it was closed. */
export const OPERATOR_ORDER_FIELDS = {
  ...ORDER_FIELDS,
  keyId: {
    schema: nullable(KeyId, "The API key that placed the order"),
    storedAs: "integer",
    ifMissing: "null",
    setBy: "service",
  },
  closedAt: {
    schema: nullable(
      dateTime({ description: "When the order was completed or cancelled", examples: [EXAMPLE_TIME] }),
      "Null for a placed order, and for one that an earlier release closed",
    ),
    storedAs: "time",
    ifMissing: "null",
    setBy: "service",
  },
} as const satisfies Fields;

/** The filters of a list of orders, as PET_FILTERS. The orders of a key have indexes that begin with the key. */
export const ORDER_FILTERS = { status: OrderStatus } satisfies FilterSchemas<Order>;
export type OrderFilters = FiltersOf<typeof ORDER_FILTERS>;

const OperatorOrder = object(schemasOf(OPERATOR_ORDER_FIELDS).required);
export type OperatorOrder = Infer<typeof OperatorOrder>;

/** A pet changes its status when it is ordered, when its order is closed, and when an operator sets it. */
export const STATUS_WHEN_ORDERED: PetStatus = "pending";
export const STATUS_AFTER: Record<OrderUpdate["status"], PetStatus> = {
  completed: "sold",
  cancelled: "available",
};

/** A pet without a status can be ordered. */
export function canBeOrdered(status: PetStatus | undefined): boolean {
  return status === undefined || status === "available";
}

export function petNotFound(id: Identifier): Rejection<"pet_not_found"> {
  return new Rejection("pet_not_found", `Pet ${id} does not exist.`);
}

export function orderNotFound(id: Identifier): Rejection<"order_not_found"> {
  return new Rejection("order_not_found", `Order ${id} does not exist.`);
}

export function petNotAvailable(id: bigint, status: PetStatus | undefined): Rejection<"pet_not_available"> {
  return new Rejection(
    "pet_not_available",
    `Pet ${id} is ${status}. A pet that is pending or sold cannot be ordered.`,
  );
}

export function orderClosed(id: bigint, status: OrderStatus): Rejection<"order_closed"> {
  return new Rejection(
    "order_closed",
    `Order ${id} is already ${status}. Only placed orders can be updated.`,
  );
}

export function preconditionFailed(id: bigint): Rejection<"precondition_failed"> {
  return new Rejection(
    "precondition_failed",
    `The ETag of order ${id} is not in If-Match. Fetch the order again.`,
  );
}

/** The status of a pet follows its placed order. */
export function petOrdered(id: bigint, orderId: bigint): Rejection<"pet_ordered"> {
  const message = `Pet ${id} has the placed order ${orderId} and keeps its status. Complete or cancel the order first.`;
  return new Rejection("pet_ordered", message);
}

/** Orders are kept, and an order names its pet. */
export function petHasOrders(id: bigint, orderId: bigint): Rejection<"pet_has_orders"> {
  const message = `Pet ${id} has orders and cannot be deleted. The latest is order ${orderId}.`;
  return new Rejection("pet_has_orders", message);
}
