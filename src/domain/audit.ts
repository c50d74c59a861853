import { formatTime } from "../text/formatting.ts";
import type { StoredFields } from "./fields.ts";

export const ACTOR_KINDS = ["console", "command line", "admin API", "server"] as const;

/** Who made a change. `name` is the user of the machine, the address of the client, or the host of the server. */
export interface Actor {
  readonly kind: (typeof ACTOR_KINDS)[number];
  readonly name?: string;
  /** The name of the operator, if one has signed in or sent a token. */
  readonly operator?: string;
}

/** Who makes a change, when (milliseconds since the epoch), and why, if they say so. */
export type Attribution = Pick<NewAuditEntry, "actor" | "at"> & { readonly reason?: string | undefined };

/** The length of a reason, in code points. */
export const MAX_REASON_LENGTH = 200;

export const AUDIT_ACTIONS = [
  "key.created",
  "key.updated",
  "key.rolled",
  "key.revoked",
  "key.disabled",
  "key.enabled",
  "key.banned",
  "key.unbanned",
  "key.expires-soon",
  "pet.created",
  "pet.updated",
  "pet.deleted",
  "order.updated",
  "data.imported",
  // Releases up to 1.1.0 recorded an export of hashes.
  "data.exported",
  "data.restored",
  // Releases before 2.0 had a command that copied data to another database.
  "data.copied",
  "database.migrated",
  "admin.signed-in",
  "admin.sign-in-failed",
  "admin.signed-out",
  "admin.token-rolled",
  "operator.created",
  "operator.updated",
  "operator.rotated",
  "operator.revoked",
  // Release 1.2.0 had a secret by which servers recognized one another.
  "server-secret.rotated",
  "plan.updated",
  "ban-rules.updated",
  // Release 1.3 stored --audit-retention.
  "settings.updated",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** What actions that are stored under their first names are called today. */
const NAMES_TODAY: Readonly<Record<string, string>> = {
  "key.rolled": "key.rotated",
  "admin.token-rolled": "admin.token-rotated",
};

/** Returns the name of an action for people. JSON, the webhook and the log have the stored one. */
export function shownAction(action: string): string {
  return NAMES_TODAY[action] ?? action;
}

/** Returns the action that has this name, stored or shown. */
export function actionNamed(name: string): AuditAction | undefined {
  return AUDIT_ACTIONS.find((action) => action === name || shownAction(action) === name);
}

export const AUDIT_TARGET_KINDS = ["key", "pet", "order", "operator"] as const;

export interface AuditTarget {
  readonly kind: (typeof AUDIT_TARGET_KINDS)[number];
  readonly id: bigint;
}

/** Values of the fields that changed; null for a missing value. Times are RFC 3339. Secrets and hashes are left out. */
export type AuditedValues = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** Times are milliseconds since the epoch. */
export interface NewAuditEntry {
  readonly at: number;
  readonly actor: Actor;
  readonly action: AuditAction;
  readonly target?: AuditTarget;
  readonly before?: AuditedValues;
  readonly after?: AuditedValues;
}

/** A row of the audit trail. */
export interface AuditRow {
  readonly id: bigint;
  readonly at: number;
  readonly actor: Actor["kind"];
  readonly actorName: string | undefined;
  readonly operator: string | undefined;
  readonly action: AuditAction;
  readonly targetKind: AuditTarget["kind"] | undefined;
  readonly targetId: bigint | undefined;
  readonly valuesBefore: AuditedValues | undefined;
  readonly valuesAfter: AuditedValues | undefined;
}

export const AUDIT_FIELDS = {
  id: { storedAs: "int64" },
  at: { storedAs: "time" },
  actor: { storedAs: "choice" },
  actorName: { storedAs: "text" },
  operator: { storedAs: "text" },
  action: { storedAs: "choice" },
  targetKind: { storedAs: "choice" },
  targetId: { storedAs: "int64" },
  valuesBefore: { storedAs: "json" },
  valuesAfter: { storedAs: "json" },
} as const satisfies StoredFields & Record<keyof AuditRow, unknown>;

export interface AuditEntry extends NewAuditEntry {
  readonly id: bigint;
}

/** Returns an entry as operators see it, with null for a missing value. */
export function auditView({ id, at, actor, action, target, before, after }: AuditEntry) {
  return {
    id,
    at: formatTime(at),
    actor: { operator: actor.operator ?? null, kind: actor.kind, name: actor.name ?? null },
    action,
    target: target ?? null,
    before: before ?? null,
    after: after ?? null,
  };
}

/** Every condition that is given has to hold. */
export interface AuditFilters {
  readonly action?: AuditAction;
  readonly actor?: Actor["kind"];
  /** The name of the operator. */
  readonly operator?: string;
  readonly target?: AuditTarget;
  /** The start of the period, inclusive. */
  readonly since?: number | undefined;
  /** The end of the period, exclusive. */
  readonly until?: number | undefined;
}

export interface AuditQuery extends AuditFilters {
  /** The identifier of the last entry of the page before. */
  readonly before?: bigint | undefined;
  /** The identifier after which entries are listed, in ascending order, which is that of their commits. */
  readonly after?: bigint | undefined;
  readonly limit: number;
}

export type TargetAction = AuditAction & `${AuditTarget["kind"]}.${string}`;

/**
 * Makes the entry of a change, for the transaction of the change. An action begins with its target. A reason is one of
 * the values after the change.
 */
export function auditEntry(
  action: TargetAction,
  id: number | bigint,
  { reason, ...rest }: Attribution & Omit<NewAuditEntry, "action" | "target">,
): NewAuditEntry {
  const kind = AUDIT_TARGET_KINDS.find((each) => action.startsWith(`${each}.`));
  const after = reason === undefined ? {} : { after: { ...rest.after, reason } };
  return { ...rest, ...after, action, ...(kind && { target: { kind, id: BigInt(id) } }) };
}

/** Returns the values that differ, or undefined if none does. */
export function changeOf(
  before: AuditedValues,
  after: AuditedValues,
): Required<Pick<NewAuditEntry, "before" | "after">> | undefined {
  const fields = Object.keys(after).filter(
    (field) => JSON.stringify(after[field]) !== JSON.stringify(before[field]),
  );
  if (fields.length === 0) return undefined;
  const only = (values: AuditedValues) =>
    Object.fromEntries(fields.map((field) => [field, values[field] ?? null]));
  return { before: only(before), after: only(after) };
}

/** Returns each field of an entry with its values before and after; undefined for a missing value. */
export function changedFields(before: AuditedValues | null, after: AuditedValues | null) {
  // Another server or release chose the names of the fields, which may be those that every object inherits.
  const earlier = new Map(Object.entries(before ?? {}));
  const later = new Map(Object.entries(after ?? {}));
  const names = new Set([...earlier.keys(), ...later.keys()]);
  return [...names].map((name) => ({ name, before: earlier.get(name), after: later.get(name) }));
}
