import { NAME_MAX_LENGTH } from "./size-limits.ts";
import { type Infer, int64, object, oneOf, text } from "../api/schema.ts";
import { Rejection } from "../api/errors.ts";
import type { Identifier } from "../api/json.ts";

export const PET_STATUSES = ["available", "pending", "sold"] as const;
export const PetStatus = oneOf(PET_STATUSES, "Availability of the pet");
export type PetStatus = Infer<typeof PetStatus>;

export const petFields = {
  name: text(NAME_MAX_LENGTH, { description: "The pet's name", examples: ["Rex"] }),
  categoryId: int64({
    description: "Identifier of the category the pet belongs to; any int64",
    examples: [7],
  }),
};

export const NewPet = object("A pet to add. Unknown fields are ignored.", petFields, { status: PetStatus });
export type NewPet = Infer<typeof NewPet>;

export const Pet = object(
  "A pet. A pet that was created without a status has no `status` until it is ordered.",
  {
    id: int64({ description: "Unique identifier assigned by the service on creation", examples: [1] }),
    ...petFields,
  },
  { status: PetStatus },
);
export type Pet = Infer<typeof Pet>;

export const ORDER_STATUSES = ["placed", "completed", "cancelled"] as const;
export const OrderStatus = oneOf(ORDER_STATUSES, "Status of the order");
export type OrderStatus = Infer<typeof OrderStatus>;

const petId = int64({ description: "Identifier of the pet", examples: [1] });

export const NewOrder = object("An order to place.", { petId });
export type NewOrder = Infer<typeof NewOrder>;

const FINAL_ORDER_STATUSES = ["completed", "cancelled"] as const;
export const OrderUpdate = object("The final status of an order.", {
  status: oneOf(FINAL_ORDER_STATUSES, "The final status of the order"),
});
export type OrderUpdate = Infer<typeof OrderUpdate>;

export const orderFields = {
  id: int64({ description: "Unique identifier assigned by the service", examples: [1] }),
  petId,
  status: OrderStatus,
  createdAt: text(40, {
    format: "date-time",
    description: "When the order was placed (RFC 3339, UTC)",
    examples: ["2026-11-15T09:30:00.000Z"],
  }),
};

export const Order = object("An order for one pet. It belongs to the API key that placed it.", orderFields);
export type Order = Infer<typeof Order>;

/** `JSON.stringify` cannot write bigints. */
export function encodeOrder({ id, petId, status, createdAt }: Order): string {
  return `{"id":${id},"petId":${petId},"status":"${status}","createdAt":"${createdAt}"}`;
}

/** A pet changes its status when it is ordered, when its order is completed or cancelled, and by corrections. */
export const STATUS_WHEN_ORDERED: PetStatus = "pending";
export const STATUS_AFTER: Record<OrderUpdate["status"], PetStatus> = {
  completed: "sold",
  cancelled: "available",
};

/** A pet without a status can be ordered. */
export function canBeOrdered(status: PetStatus | undefined): boolean {
  return status === undefined || status === "available";
}

/** What the rules of pets, orders and repeated requests forbid. */

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

export const IDEMPOTENCY_CONFLICT = new Rejection(
  "idempotency_conflict",
  "A request with this Idempotency-Key is still in progress. Retry in a moment.",
);
export const IDEMPOTENCY_KEY_REUSED = new Rejection(
  "idempotency_key_reused",
  "This Idempotency-Key was already used with a different request body. Use a new key.",
);
