import { Rejection } from "../api/errors.ts";
import { mapValues } from "./fields.ts";
import { NEW_PET_FIELDS, type OrderStatus, type Pet } from "./resources.ts";
import { type Attribution, type AuditedValues, auditEntry, changeOf, type NewAuditEntry } from "./audit.ts";

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

/** Returns undefined if nothing changes. */
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

/** Integers are text, because a number cannot represent every int64. */
function auditedValues(pet: Pet): AuditedValues {
  return mapValues(NEW_PET_FIELDS, (_, name) => {
    const value: unknown = Reflect.get(pet, name);
    return value === undefined ? null : String(value);
  });
}
