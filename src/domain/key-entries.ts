import { formatOptionalTime, formatTime } from "../text/formatting.ts";
import { type ApiKey, type KeyChange, storedKeyOf } from "./api-keys.ts";
import type { NewSecret } from "./secrets.ts";
import { shownValuesOf } from "./fields.ts";
import { KEY_FIELDS } from "./key-fields.ts";
import {
  type Attribution,
  type TargetAction,
  type AuditedValues,
  changeOf,
  type NewAuditEntry,
  auditEntry,
} from "./audit.ts";

export function keyCreationEntry(key: ApiKey, { hint }: NewSecret, by: Attribution): NewAuditEntry {
  const given = Object.entries(auditedValues(key)).filter(([, value]) => !isEmpty(value));
  return auditEntry("key.created", key.id, { ...by, after: { ...Object.fromEntries(given), hint } });
}

export function keyRotationEntry(
  id: number,
  { hint, overlapEndsAt }: { hint: string; overlapEndsAt: number },
  by: Attribution,
): NewAuditEntry {
  const previousSecretsValidUntil = formatTime(Math.max(overlapEndsAt, by.at));
  return auditEntry("key.rolled", id, { ...by, after: { hint, previousSecretsValidUntil } });
}

/** Makes the entry that says when a key ends. The key itself does not change. */
export function keyExpiryEntry(
  { id, name, owner, expiresAt }: Pick<ApiKey, "id" | "name" | "owner" | "expiresAt">,
  by: Attribution,
): NewAuditEntry {
  const after = { name, owner: owner ?? null, expiresAt: formatOptionalTime(expiresAt) };
  return auditEntry("key.expires-soon", id, { ...by, after });
}

/** Makes the entry of a ban, which says whose key it is. `key` is undefined if the key does not exist any more. */
export function banEntry(
  id: number,
  key: Pick<ApiKey, "name" | "owner" | "plan"> | undefined,
  { bannedUntil, ...by }: Attribution & { readonly bannedUntil: number },
): NewAuditEntry {
  const owned = key && { name: key.name, owner: key.owner ?? null, plan: key.plan };
  return auditEntry("key.banned", id, { ...by, after: { ...owned, bannedUntil: formatTime(bannedUntil) } });
}

/** Returns undefined if nothing changes. */
export function keyUpdateEntry(
  { before, after, change }: { before: ApiKey; after: ApiKey; change: KeyChange },
  by: Attribution,
): NewAuditEntry | undefined {
  const { id } = before;
  // An unban changes the quota of the key, even if the key was unbanned before.
  if (change.unbannedAt !== undefined) return auditEntry("key.unbanned", id, by);
  const changed = changeOf(auditedValues(before), auditedValues(after));
  return changed && auditEntry(actionOf(change), id, { ...by, ...changed });
}

function actionOf({ revokedAt, disabledAt }: KeyChange): TargetAction {
  if (revokedAt !== undefined) return "key.revoked";
  if (disabledAt === undefined) return "key.updated";
  return disabledAt === null ? "key.enabled" : "key.disabled";
}

const { id: _id, createdAt: _createdAt, ...AUDITED_KEY_FIELDS } = KEY_FIELDS;

function auditedValues(key: ApiKey): AuditedValues {
  return shownValuesOf(AUDITED_KEY_FIELDS, storedKeyOf(key));
}

function isEmpty(value: AuditedValues[string] | undefined): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}
