import { rejection } from "../contract/errors.ts";
import type { OrderStatus, PetStatus } from "../contract/resources.ts";

/** What every engine says in the same words. */
export const petNotFound = (id: bigint) => rejection("pet_not_found", `There is no pet ${id}.`);

export const petNotAvailable = (id: bigint, status: PetStatus | undefined) =>
  rejection("pet_not_available", `Pet ${id} is ${status}.`);

export const orderNotFound = (id: bigint) => rejection("order_not_found", `There is no order ${id}.`);

export const orderClosed = (id: bigint, status: OrderStatus) =>
  rejection("order_closed", `Order ${id} is ${status}.`);
