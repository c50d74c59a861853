import { Rejection } from "../api/errors.ts";
import type { Order, OrderStatus, Pet, PetStatus } from "./resources.ts";
import { type Attribution, type AuditedValues, auditEntry, changeOf, type NewAuditEntry } from "./audit.ts";

/** The fields of a pet that an operator changes. Null removes the status. */
export interface PetChange {
  readonly name?: string;
  readonly categoryId?: bigint;
  readonly status?: PetStatus | null;
}

/** An order as operators see it. Earlier releases recorded no key, and not when an order was closed. */
export interface OperatorOrder extends Order {
  readonly keyId: number | null;
  /** When it was completed or cancelled. */
  readonly closedAt: string | null;
}

/** Every condition that is given has to hold. */
export interface OrderQuery {
  readonly status?: OrderStatus | undefined;
  readonly keyId?: number | undefined;
  readonly petId?: bigint | undefined;
  /** Only orders with a smaller identifier: for the next page. */
  readonly before?: bigint | undefined;
  readonly limit: number;
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

export function applyPetChange(pet: Pet, change: PetChange): Pet {
  const { status, ...changed } = { ...pet, ...change };
  return status === undefined || status === null ? changed : { ...changed, status };
}

/** Undefined if nothing changes. */
export function petUpdated(before: Pet, after: Pet, by: Attribution): NewAuditEntry | undefined {
  const changed = changeOf(auditedValues(before), auditedValues(after));
  return changed && auditEntry("pet.updated", before.id, { ...by, ...changed });
}

export function petCreated(pet: Pet, by: Attribution): NewAuditEntry {
  return auditEntry("pet.created", pet.id, { ...by, after: auditedValues(pet) });
}

export function petDeleted(pet: Pet, by: Attribution): NewAuditEntry {
  return auditEntry("pet.deleted", pet.id, { ...by, before: auditedValues(pet) });
}

export function orderUpdated(id: bigint, status: OrderStatus, by: Attribution): NewAuditEntry {
  return auditEntry("order.updated", id, { ...by, before: { status: "placed" }, after: { status } });
}

/** The category as text, because not every int64 is a number. */
function auditedValues({ name, categoryId, status }: Pet): AuditedValues {
  return { name, categoryId: String(categoryId), status: status ?? null };
}
