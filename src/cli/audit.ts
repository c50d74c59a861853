import { formatTime } from "../text/formatting.ts";
import { UsageError } from "../config/usage-error.ts";
import { choice } from "../config/value-types.ts";
import { ACTOR_KINDS, type AuditedValues, changedFields } from "../domain/audit.ts";
import type { AuditItem } from "../operator/operations.ts";
import { limitOption, listCommand } from "./operation-command.ts";
import { ID_TYPES } from "./operation-flags.ts";

/** An actor as in JSON, or in one word that a shell can complete: `command-line`. */
const actorKind = {
  ...choice("ACTOR", ACTOR_KINDS),
  choices: ACTOR_KINDS.map((kind) => kind.replaceAll(" ", "-")),
  parse: (text: string) =>
    ACTOR_KINDS.find((kind) => kind.toLowerCase() === text.toLowerCase().replaceAll("-", " ")),
};

const MAX_LIMIT = 10_000;
/** Flags that are short for --target. */
const TARGETS = ["key", "pet", "order"] as const;

export const audit = listCommand({
  name: "audit",
  operation: "listAudit",
  summary: "List who changed what: keys, bans, sign-ins, pets and orders",
  description:
    "Lists the audit trail of an environment, newest first: all of it, or what meets every given condition. CHANGES shows each field that changed with its value before and after. The audit trail never contains a secret.",
  fields: {
    action: { option: { help: "Only this action" } },
    actor: { option: { type: actorKind, help: "Only what was done there" } },
    operator: { option: { help: "Only what this operator has done" } },
    target: { option: { help: "Only what concerns this key, pet, order or operator" } },
  },
  options: {
    key: { type: ID_TYPES.keyId, help: "Only what concerns this key" },
    pet: { type: ID_TYPES.petId, help: "Only what concerns this pet" },
    order: { type: ID_TYPES.orderId, help: "Only what concerns this order" },
    ...limitOption(MAX_LIMIT, "entries"),
  },
  examples: [
    "petstore audit",
    "petstore audit --key 3 --since 30d",
    "petstore audit --pet 7",
    "petstore audit --target operator:2 --operator ann",
    "petstore audit --action key.banned --since 2026-11-01 --until 2026-12-01 --limit 1000",
    "petstore audit --actor 'command line' --json",
  ],
  prepare({ query = {} }, { values, startedAt }) {
    const { since = "", until = formatTime(startedAt) } = query;
    if (String(since) > String(until))
      throw new UsageError("--since is after --until; the period must have a length");
    const { target } = query;
    const kinds = TARGETS.filter((each) => values[each] !== undefined);
    const [flag, second] = [...kinds, ...(target === undefined ? [] : ["target"])];
    if (second !== undefined)
      throw new UsageError(`--${flag} and --${second} exclude each other; use one of them`);
    return { query: { ...query, ...kinds.map((kind) => ({ target: `${kind}:${values[kind]}` }))[0] } };
  },
  noun: "audit entries",
  columns: [
    ["TIME", ({ at }, screen) => screen.time(at)],
    ["ACTION", ({ action }) => action],
    ["TARGET", ({ target }) => (target === null ? "-" : `${target.kind} ${target.id}`)],
    ["ACTOR", ({ actor }) => describeActor(actor)],
    ["CHANGES", describeChanges],
  ],
  next: () => `raise --limit, up to ${MAX_LIMIT}, or set --since and --until`,
});

/** `ann, console (192.0.2.1)`: the person first. */
function describeActor({ operator, kind, name }: AuditItem["actor"]): string {
  const where = name === null ? kind : `${kind} (${name})`;
  return operator === null ? where : `${operator}, ${where}`;
}

/** `plan: free → pro, owner: ann`. */
function describeChanges({ before, after }: Pick<AuditItem, "before" | "after">): string {
  return changedFields(before, after)
    .map(({ name, before: earlier, after: later }) => {
      const change = earlier === undefined ? "" : `${describeValue(earlier)} → `;
      return `${name}: ${change}${describeValue(later)}`;
    })
    .join(", ");
}

function describeValue(value: AuditedValues[string] | undefined): string {
  if (value === undefined || value === null) return "none";
  if (typeof value !== "object") return String(value);
  return value.length === 0 ? "none" : value.join(" ");
}
