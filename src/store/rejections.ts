import { refuse } from "../contract/errors.ts";
import type { OrderStatus, PetStatus } from "../contract/resources.ts";

/** What every engine says in the same words. */
export const petNotFound = (id: bigint) => refuse("pet_not_found", `There is no animal ${id}.`);

export const petNotAvailable = (id: bigint, status: PetStatus | undefined) =>
  refuse("pet_not_available", `Animal ${id} is ${status}.`);

export const orderNotFound = (id: bigint) => refuse("order_not_found", `There is no order ${id}.`);

export const orderClosed = (id: bigint, status: OrderStatus) =>
  refuse("order_closed", `Order ${id} is ${status}.`);
