import { rejection, type Rejection } from "../api/errors.ts";
import type { Identifier } from "../api/json.ts";
import type { OrderStatus, PetStatus } from "./resources.ts";

/** What the rules of pets, orders and repeated requests forbid. */

export function petNotFound(id: Identifier): Rejection<"pet_not_found"> {
  return rejection("pet_not_found", `Pet ${id} does not exist.`);
}

export function orderNotFound(id: Identifier): Rejection<"order_not_found"> {
  return rejection("order_not_found", `Order ${id} does not exist.`);
}

export function petNotAvailable(id: bigint, status: PetStatus | undefined): Rejection<"pet_not_available"> {
  return rejection(
    "pet_not_available",
    `Pet ${id} is ${status}. A pet that is pending or sold cannot be ordered.`,
  );
}

export function orderClosed(id: bigint, status: OrderStatus): Rejection<"order_closed"> {
  return rejection("order_closed", `Order ${id} is already ${status}. Only placed orders can be updated.`);
}

export const IDEMPOTENCY_CONFLICT = rejection(
  "idempotency_conflict",
  "A request with this Idempotency-Key is still in progress. Retry in a moment.",
);
export const IDEMPOTENCY_KEY_REUSED = rejection(
  "idempotency_key_reused",
  "This Idempotency-Key was already used with a different request body. Use a new key.",
);
