import { mapValues } from "./fields.ts";
import { GIVEN_PET_FIELDS, type OrderStatus, type Pet } from "./pets-and-orders.ts";
import { type Attribution, type AuditedValues, auditEntry, changeOf, type NewAuditEntry } from "./audit.ts";

/** Returns undefined if nothing changes. */
export function petUpdateEntry(before: Pet, after: Pet, by: Attribution): NewAuditEntry | undefined {
  const changed = changeOf(auditedValues(before), auditedValues(after));
  return changed && auditEntry("pet.updated", before.id, { ...by, ...changed });
}

export function petCreationEntry(pet: Pet, by: Attribution): NewAuditEntry {
  return auditEntry("pet.created", pet.id, { ...by, after: auditedValues(pet) });
}

export function petDeletionEntry(pet: Pet, by: Attribution): NewAuditEntry {
  return auditEntry("pet.deleted", pet.id, { ...by, before: auditedValues(pet) });
}

export function orderUpdateEntry(id: bigint, status: OrderStatus, by: Attribution): NewAuditEntry {
  return auditEntry("order.updated", id, { ...by, before: { status: "placed" }, after: { status } });
}

/** Integers are text, because a number cannot represent every int64. */
function auditedValues(pet: Pet): AuditedValues {
  return mapValues(GIVEN_PET_FIELDS, (_, name) => {
    const value: unknown = Reflect.get(pet, name);
    return value === undefined ? null : String(value);
  });
}
