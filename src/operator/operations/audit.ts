import {
  array,
  type Infer,
  int64,
  line,
  nullable,
  object,
  oneOf,
  queryIdentifier,
  type Schema,
  valueSchema,
} from "../../api/schema.ts";
import {
  ACTOR_KINDS,
  AUDIT_ACTIONS,
  AUDIT_TARGET_KINDS,
  type AuditedValues,
  type AuditTarget,
} from "../../domain/audit.ts";
import { MAX_ROWS_SEARCHED } from "../../domain/size-limits.ts";
import { cursor, limit, nextCursor, ok, since, tagged, time, until } from "./rows.ts";

export const ActorKind = oneOf(ACTOR_KINDS, "Where the change was made");
export const Action = oneOf(AUDIT_ACTIONS, "What was done");

const TARGET = new RegExp(`^(${AUDIT_TARGET_KINDS.join("|")}):([1-9]\\d{0,17})$`);

/** The target in a query, such as `key:7`. */
const target: Schema<AuditTarget> = valueSchema(
  {
    kind: "other",
    expected: "a kind and an identifier such as key:7, pet:12, order:3 or operator:2",
    json: { type: "string", pattern: TARGET.source, examples: ["key:7"] },
  },
  (value) => {
    const match = typeof value === "string" ? TARGET.exec(value) : null;
    const kind = AUDIT_TARGET_KINDS.find((candidate) => candidate === match?.[1]);
    return kind && { kind, id: BigInt(match?.[2] ?? 0) };
  },
);

const auditedValues = (description: string): Schema<AuditedValues> =>
  valueSchema(
    {
      kind: "other",
      expected: "an object of strings, numbers, booleans, nulls and arrays of strings",
      json: { type: "object", description },
    },
    (value) => (isAuditedValues(value) ? value : undefined),
  );

function isAuditedValues(value: unknown): value is AuditedValues {
  return typeof value === "object" && value !== null && Object.values(value).every(isAuditedValue);
}

function isAuditedValue(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((item) => typeof item === "string");
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

const AuditItem = object("A change that somebody made", {
  id: int64("Identifier of the entry; a later entry has a greater one"),
  at: time("When the change was made"),
  actor: object({
    operator: nullable(
      line(64, "Name of the operator"),
      "Null for the server and for commands on its machine",
    ),
    kind: ActorKind,
    name: nullable(line(300, "User of the machine, address of the client, or server")),
  }),
  action: Action,
  target: nullable(
    object(
      "What was changed",
      { kind: oneOf(AUDIT_TARGET_KINDS), id: int64("Its identifier") },
      { name: line(100, "Name of an API key; missing while it cannot be read") },
    ),
  ),
  before: nullable(auditedValues("The earlier values of the fields that changed")),
  after: nullable(auditedValues("The new values of the fields that changed")),
});
export type AuditItem = Infer<typeof AuditItem>;

export const AuditPage = object("A page of the audit trail, newest first", {
  items: array(AuditItem),
  nextCursor,
});

/** The operation that shows the audit trail. */
export const AUDIT_OPERATIONS = tagged("Audit", {
  listAudit: {
    method: "GET",
    path: "/audit",
    cost: 2,
    summary: "List changes",
    description:
      "Lists who changed what, newest first, or with `after` oldest first. Several filters look at 5,000 entries for a page, so a page with few entries, or none, may have a `nextCursor`.",
    query: {
      action: Action,
      operator: line(64, "Name of the operator"),
      actor: ActorKind,
      target,
      since,
      until,
      after: queryIdentifier("Only entries that were written after the one with this identifier"),
      limit,
      cursor: cursor("audit"),
    },
    maxRowsRead: MAX_ROWS_SEARCHED,
    success: ok("A page of the audit trail", AuditPage),
  },
});
