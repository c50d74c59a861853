import { formatTime } from "../api/formatting.ts";
import { AUDIT_OPTIONS, MAX_AUDIT_LIMIT } from "../config/key-options.ts";
import type { ValuesOf } from "../config/parse-options.ts";
import { printable, UsageError } from "../config/usage-error.ts";
import { AUDIT_TARGET_KINDS, type AuditedValues } from "../domain/audit.ts";
import type { AuditEntry } from "../operator/operations.ts";
import { defineCommand } from "./command.ts";
import { OperationFlags } from "./operation-flags.ts";
import { firstItems, OPERATOR_OPTIONS, SERVER_SETTINGS, whereOf, withOperator } from "./operator.ts";
import { columns, json } from "./output.ts";

const FLAGS = new OperationFlags("listAudit", {
  actor: { flag: "actor", option: AUDIT_OPTIONS.actor },
  target: null,
  limit: null,
  cursor: null,
});
const HEADER = ["TIME", "ACTION", "TARGET", "ACTOR", "CHANGES"] as const;

export const audit = defineCommand({
  name: "audit",
  summary: "List who changed what: keys, bans, sign-ins, pets and orders",
  description:
    "Lists the audit trail of an environment, newest first: all of it, or what meets every given condition. CHANGES shows each field that changed with its value before and after. The audit trail never contains a secret.",
  options: { ...FLAGS.options, ...AUDIT_OPTIONS, ...OPERATOR_OPTIONS, ...SERVER_SETTINGS },
  examples: [
    "petstore audit",
    "petstore audit --key 3 --since 30d",
    "petstore audit --pet 7",
    "petstore audit --action key.banned --since 2026-11-01 --until 2026-12-01 --limit 1000",
    "petstore audit --actor command-line --json",
  ],
  run: (input, context) => {
    const { values } = input;
    const target = targetOf(values);
    const { query } = FLAGS.inputOf(values, context.clock.now());
    const { since, until } = query as { since?: string; until?: string };
    if (target instanceof UsageError) return Promise.resolve(target);
    if (since !== undefined && since > (until ?? formatTime(context.clock.now())))
      return Promise.resolve(new UsageError("--since is after --until; the period must have a length"));
    return withOperator(input, context, async (call) => {
      const { limit } = values;
      const { items, hasMore } = await firstItems(limit, (page) =>
        call("listAudit", { query: { ...query, target, ...page } }),
      );
      if (values.json) await context.print(json(items));
      else if (items.length > 0) await context.print(columns([HEADER, ...items.map(row)]));
      else await context.print(`The audit trail of ${whereOf(values)} has no such entry.\n`);
      if (hasMore) {
        const remedy = limit < MAX_AUDIT_LIMIT ? "raise --limit, or set" : "set";
        context.warn(`there are more entries than ${limit}; ${remedy} --since and --until`);
      }
      return undefined;
    });
  },
});

/** `key:3`, as the operation takes it. */
function targetOf(
  values: Pick<ValuesOf<typeof AUDIT_OPTIONS>, "key" | "pet" | "order">,
): string | UsageError | undefined {
  const [target, second] = AUDIT_TARGET_KINDS.filter((kind) => values[kind] !== undefined);
  if (target === undefined) return undefined;
  if (second === undefined) return `${target}:${values[target]}`;
  return new UsageError(`--${target} and --${second} exclude each other; use one of them`);
}

function row({ at, action, target, actor, before, after }: AuditEntry): string[] {
  return [at, action, describeTarget(target), describeActor(actor), describeChanges(before, after)];
}

function describeTarget(target: AuditEntry["target"]): string {
  return target === null ? "-" : `${target.kind} ${target.id}`;
}

function describeActor({ kind, name }: AuditEntry["actor"]): string {
  return name === null ? kind : `${kind} (${printable(name)})`;
}

/** `plan: free → pro, owner: ann`. */
function describeChanges(earlier: AuditedValues | null, later: AuditedValues | null): string {
  const before = earlier ?? {};
  const after = later ?? {};
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...fields]
    .map((field) =>
      field in before
        ? `${field}: ${describeValue(before[field])} → ${describeValue(after[field])}`
        : `${field}: ${describeValue(after[field])}`,
    )
    .join(", ");
}

function describeValue(value: AuditedValues[string] | undefined): string {
  if (value === undefined || value === null) return "none";
  if (typeof value !== "object") return printable(String(value));
  return value.length === 0 ? "none" : value.map(printable).join(" ");
}
