import type {
  Actor,
  AuditAction,
  AuditedValues,
  AuditEntry,
  AuditQuery,
  AuditTarget,
  NewAuditEntry,
} from "../domain/audit.ts";

/*
 * Rows of the audit trail as both databases return them, and the queries that both understand.
 */

export interface AuditRow {
  readonly id: bigint;
  readonly at: bigint;
  readonly actor: Actor["kind"];
  readonly actorName: string | null;
  readonly action: AuditAction;
  readonly targetKind: AuditTarget["kind"] | null;
  readonly targetId: bigint | null;
  /** JSON objects. */
  readonly valuesBefore: string | null;
  readonly valuesAfter: string | null;
}

const SELECT = `SELECT id, at, actor, actor_name AS "actorName", action, target_kind AS "targetKind",
  target_id AS "targetId", values_before AS "valuesBefore", values_after AS "valuesAfter" FROM audit`;

export const INSERT_AUDIT = `INSERT INTO audit
  (at, actor, actor_name, action, target_kind, target_id, values_before, values_after)`;

/** The values of INSERT_AUDIT, in their order. */
export type AuditValues = [
  at: number,
  actor: string,
  actorName: string | null,
  action: string,
  targetKind: string | null,
  targetId: bigint | null,
  valuesBefore: string | null,
  valuesAfter: string | null,
];

export function auditValues({ at, actor, action, target, before, after }: NewAuditEntry): AuditValues {
  const { kind, name = null } = actor;
  return [at, kind, name, action, target?.kind ?? null, target?.id ?? null, jsonOf(before), jsonOf(after)];
}

function jsonOf(values: AuditedValues | undefined): string | null {
  return values === undefined ? null : JSON.stringify(values);
}

/** Columns that are null in the row are absent from the entry. */
export function auditEntryOf(row: AuditRow): AuditEntry {
  const { id, at, actor, actorName, action, targetKind, targetId, valuesBefore, valuesAfter } = row;
  const hasTarget = targetKind !== null && targetId !== null;
  return {
    id,
    at: Number(at),
    actor: { kind: actor, ...(actorName !== null && { name: actorName }) },
    action,
    ...(hasTarget && { target: { kind: targetKind, id: targetId } }),
    ...(valuesBefore !== null && { before: JSON.parse(valuesBefore) }),
    ...(valuesAfter !== null && { after: JSON.parse(valuesAfter) }),
  };
}

export interface Dialect {
  /** The nth parameter. */
  parameter(n: number): string;
  /** Follows the name of the table, for a planner without statistics. */
  indexedBy(index: string): string;
}

/**
 * The SQL of a page, newest first, and its values. Each combination of filters has its own text, so that it has its own
 * plan.
 */
export function auditPage(
  { action, actor, target, since, until, before, limit }: AuditQuery,
  { parameter, indexedBy }: Dialect,
): { sql: string; values: (string | number | bigint)[] } {
  const values: (string | number | bigint)[] = [];
  const add = (value: string | number | bigint) => parameter(values.push(value));
  const conditions: string[] = [];
  if (target) conditions.push(`target_kind = ${add(target.kind)} AND target_id = ${add(target.id)}`);
  if (action) conditions.push(`action = ${add(action)}`);
  if (actor) conditions.push(`actor = ${add(actor)}`);
  if (since !== undefined) conditions.push(`at >= ${add(since)}`);
  if (until !== undefined) conditions.push(`at < ${add(until)}`);
  if (before !== undefined) {
    const id = add(before);
    conditions.push(`(at, id) < ((SELECT at FROM audit WHERE id = ${id}), ${id})`);
  }
  const where = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
  const from = `${SELECT}${indexedBy(indexOf({ target, action, actor }))}`;
  // One row more than the page: it shows that the page has a successor. SQLite plans by the value of a bare LIMIT.
  return { sql: `${from}${where} ORDER BY at DESC, id DESC LIMIT +${add(limit + 1)}`, values };
}

/** A target has few entries; the other indexes have no entry that the filters would skip. */
function indexOf({
  target,
  action,
  actor,
}: { [F in "target" | "action" | "actor"]: AuditQuery[F] | undefined }): string {
  if (target) return "audit_by_target";
  if (action) return actor ? "audit_by_action_and_actor" : "audit_by_action";
  return actor ? "audit_by_actor" : "audit_by_time";
}
