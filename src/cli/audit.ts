import { describeStorage, storageOf } from "../config/config.ts";
import { AUDIT_OPTIONS, MAX_AUDIT_LIMIT } from "../config/history-options.ts";
import { KEY_OPTIONS } from "../config/key-options.ts";
import { STORAGE_OPTIONS } from "../config/options.ts";
import type { ValuesOf } from "../config/parse-options.ts";
import { periodOf } from "../config/time-types.ts";
import { printable, UsageError } from "../config/usage-error.ts";
import { formatTime } from "../contract/formatting.ts";
import { toJson } from "../contract/json.ts";
import {
  type Actor,
  AUDIT_TARGET_KINDS,
  type AuditedValues,
  type AuditEntry,
  type AuditTarget,
  auditView,
} from "../domain/audit.ts";
import { defineCommand } from "./command.ts";
import { databaseExists, withKeyStore } from "./keys/key-store.ts";
import { columns } from "./output.ts";

const HEADER = ["TIME", "ACTION", "TARGET", "ACTOR", "CHANGES"] as const;

export const audit = defineCommand({
  name: "audit",
  summary: "List who changed what: keys, bans, sign-ins, pets and orders",
  description:
    "Lists the audit trail of an environment, newest first: all of it, or what meets every given condition. CHANGES shows each field that changed with its value before and after. The audit trail never contains a secret.",
  options: { ...AUDIT_OPTIONS, ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: [
    "petstore audit",
    "petstore audit --key 3 --since 30d",
    "petstore audit --pet 7",
    "petstore audit --action key.banned --since 2026-11-01 --until 2026-12-01 --limit 1000",
    "petstore audit --actor command-line --json",
  ],
  async run({ values }, { clock, print, warn }) {
    const storage = storageOf(values);
    const { action, actor, since, until, limit } = values;
    const target = targetOf(values);
    if (target instanceof UsageError) return target;
    const period = periodOf({ since, until }, clock.now());
    if (period instanceof UsageError) return period;
    const query = {
      limit,
      ...(action !== undefined && { action }),
      ...(actor !== undefined && { actor }),
      ...(target && { target }),
      ...period,
    };
    const { items, hasMore } = databaseExists(storage)
      ? await withKeyStore(storage, async (stores) => stores.audit.listAudit(query))
      : { items: [], hasMore: false };
    if (values.json) await print(`${toJson(items.map(auditView), 2)}\n`);
    else if (items.length > 0) await print(columns([HEADER, ...items.map(row)]));
    else {
      const { data } = describeStorage(storage);
      await print(`The audit trail of ${values.env} (data: ${data}) has no such entry.\n`);
    }
    if (hasMore) {
      const remedy = limit < MAX_AUDIT_LIMIT ? "raise --limit, or set" : "set";
      warn(`there are more entries than ${limit}; ${remedy} --since and --until`);
    }
    return undefined;
  },
});

function targetOf(
  values: Pick<ValuesOf<typeof AUDIT_OPTIONS>, AuditTarget["kind"]>,
): AuditTarget | UsageError | undefined {
  const [target, second] = AUDIT_TARGET_KINDS.flatMap((kind) => {
    const id = values[kind];
    return id === undefined ? [] : [{ kind, id: BigInt(id) }];
  });
  if (target === undefined || second === undefined) return target;
  return new UsageError(`--${target.kind} and --${second.kind} exclude each other; use one of them`);
}

function row({ at, action, target, actor, before, after }: AuditEntry): string[] {
  return [
    formatTime(at),
    action,
    describeTarget(target),
    describeActor(actor),
    describeChanges(before, after),
  ];
}

function describeTarget(target: AuditTarget | undefined): string {
  return target === undefined ? "-" : `${target.kind} ${target.id}`;
}

function describeActor({ kind, name }: Actor): string {
  return name === undefined ? kind : `${kind} (${printable(name)})`;
}

/** `plan: free → pro, owner: ann`. */
function describeChanges(before: AuditedValues = {}, after: AuditedValues = {}): string {
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
