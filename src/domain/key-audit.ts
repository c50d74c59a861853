import { formatOptionalTime, formatTime } from "../api/formatting.ts";
import type { ApiKey, NewSecret } from "./api-keys.ts";
import type { Attribution, AuditAction, AuditedValues, NewAuditEntry } from "./audit.ts";
import type { KeyChange } from "./ports.ts";

/*
 * The audit entries of the changes of a key. A store writes them in the transaction of the change.
 */

export function keyCreated(key: ApiKey, { hint }: NewSecret, by: Attribution): NewAuditEntry {
  const given = Object.entries(auditedValues(key)).filter(([, value]) => !isEmpty(value));
  return entry("key.created", key.id, { ...by, after: { ...Object.fromEntries(given), hint } });
}

export function keyRolled(
  id: number,
  { hint, overlapEndsAt }: { hint: string; overlapEndsAt: number },
  by: Attribution,
): NewAuditEntry {
  const previousSecretsValidUntil = formatTime(Math.max(overlapEndsAt, by.at));
  return entry("key.rolled", id, { ...by, after: { hint, previousSecretsValidUntil } });
}

/** Undefined if nothing changes. */
export function keyUpdated(
  { before, after, change }: { before: ApiKey; after: ApiKey; change: KeyChange },
  by: Attribution,
): NewAuditEntry | undefined {
  const { id } = before;
  // An unban changes the usage of the key, also if the key was unbanned before.
  if (change.unbannedAt !== undefined) return entry("key.unbanned", id, by);
  const old = auditedValues(before);
  const changed = Object.entries(auditedValues(after)).filter(
    ([field, value]) => JSON.stringify(value) !== JSON.stringify(old[field]),
  );
  if (changed.length === 0) return undefined;
  return entry(actionOf(change), id, {
    ...by,
    before: Object.fromEntries(changed.map(([field]) => [field, old[field] ?? null])),
    after: Object.fromEntries(changed),
  });
}

function actionOf({ revokedAt, disabledAt }: KeyChange): AuditAction {
  if (revokedAt !== undefined) return "key.revoked";
  if (disabledAt === undefined) return "key.updated";
  return disabledAt === null ? "key.enabled" : "key.disabled";
}

function entry(
  action: AuditAction,
  keyId: number,
  rest: Omit<NewAuditEntry, "action" | "target">,
): NewAuditEntry {
  return { ...rest, action, target: { kind: "key", id: BigInt(keyId) } };
}

function auditedValues(key: ApiKey): AuditedValues {
  return {
    name: key.name,
    owner: key.owner ?? null,
    notes: key.notes ?? null,
    labels: key.labels,
    plan: key.plan,
    perMinute: key.limits?.perMinute ?? null,
    perDay: key.limits?.perDay ?? null,
    access: key.access,
    expiresAt: formatOptionalTime(key.expiresAt),
    revokedAt: formatOptionalTime(key.revokedAt),
    disabledAt: formatOptionalTime(key.disabledAt),
  };
}

function isEmpty(value: AuditedValues[string] | undefined): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}
