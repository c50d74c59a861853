import { formatTime } from "../../text/formatting.ts";
import { UsageError } from "../../config/usage-error.ts";
import { choice } from "../../config/value-types.ts";
import {
  ACTOR_KINDS,
  actionNamed,
  AUDIT_ACTIONS,
  type AuditedValues,
  changedFields,
  shownAction,
} from "../../domain/audit.ts";
import type { AuditItem } from "../../operator/operations.ts";
import type { CallOperation } from "../calls/call.ts";
import { firstItems } from "../calls/pages.ts";
import { follow, type Followed, followOption } from "../follow.ts";
import { limitOption, listCommand } from "../list-command.ts";
import { ID_TYPES } from "../operation-flags.ts";
import { shortened } from "../output.ts";

/** An actor as in JSON, or in one word that a shell can complete: `command-line`. */
const actorKind = {
  ...choice("ACTOR", ACTOR_KINDS),
  choices: ACTOR_KINDS.map((kind) => kind.replaceAll(" ", "-")),
  parse: (text: string) =>
    ACTOR_KINDS.find((kind) => kind.toLowerCase() === text.toLowerCase().replaceAll("-", " ")),
};

const actionType = { ...choice("ACTION", AUDIT_ACTIONS.map(shownAction)), parse: actionNamed };

const MAX_LIMIT = 10_000;
/** Flags that are short for --target. */
const TARGETS = ["key", "pet", "order"] as const;

const OPTIONS = {
  key: { type: ID_TYPES.keyId, help: "Only what concerns this key" },
  pet: { type: ID_TYPES.petId, help: "Only what concerns this pet" },
  order: { type: ID_TYPES.orderId, help: "Only what concerns this order" },
  ...followOption("entries"),
  ...limitOption(MAX_LIMIT, "entries"),
} as const;

export const audit = listCommand<"listAudit", typeof OPTIONS>({
  name: "audit",
  operation: "listAudit",
  summary: "List who changed what, with bans and sign-ins",
  description:
    "Lists the audit trail of an environment, newest first: all of it, or what meets every given condition. CHANGES shows each field that changed with its value before and after. The audit trail never contains a secret. --follow prints new entries as they are written, oldest first, each on a line.",
  fields: {
    action: { option: { type: actionType, help: "Only this action" } },
    actor: { option: { type: actorKind, help: "Only what was done there" } },
    operator: { option: { help: "Only what this operator has done" } },
    target: { option: { help: "Only what concerns this key, pet, order or operator" } },
    after: { option: { help: "Only entries after the one with this identifier, oldest first" } },
  },
  options: OPTIONS,
  examples: [
    "petstore audit",
    "petstore audit --key 3 --since 30d",
    "petstore audit --pet 7",
    "petstore audit --target operator:2 --operator ann",
    "petstore audit --action key.banned --since 2026-11-01 --until 2026-12-01 --limit 1000",
    "petstore audit --actor 'command line' --json",
    "petstore audit --follow --action key.banned",
  ],
  prepare({ query = {} }, { values, startedAt }) {
    const { since = "", until = formatTime(startedAt) } = query;
    if (String(since) > String(until))
      throw new UsageError("--since is after --until; the period must have a length");
    if (values.follow && query["until"] !== undefined)
      throw new UsageError("--follow and --until exclude each other; use one of them");
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
    ["ACTION", ({ action }) => shownAction(action)],
    ["TARGET", ({ target }) => targetText(target)],
    ["ACTOR", ({ actor }) => describeActor(actor)],
    ["CHANGES", describeChanges],
  ],
  next: () => `raise --limit, up to ${MAX_LIMIT}, or set --since and --until`,
  follow: async (call, items, { query, execution }) =>
    follow(await followed(call, items, { query, limit: execution.values.limit }), execution),
});

interface Following {
  readonly query: Readonly<Record<string, unknown>>;
  /** The most entries that are printed at first. */
  readonly limit: number;
}

/** Identifiers ascend in the order in which entries are committed; times are those of several servers. */
const inOrder = (entries: readonly AuditItem[]) => entries.toSorted((a, b) => (a.id < b.id ? -1 : 1));

async function followed(
  call: CallOperation,
  items: readonly AuditItem[],
  { query, limit }: Following,
): Promise<Followed<AuditItem>> {
  const list = (most: number, start: object) =>
    firstItems(most, (page) => call("listAudit", { query: { ...query, ...start, ...page } }));
  let last = BigInt(String(query["after"] ?? 0));
  let first = items;
  if (query["after"] === undefined) {
    // The list follows the newest entry, so that no entry is between them.
    const [newest] = (await call("listAudit", { query: { limit: 1 } })).items;
    last = newest?.id ?? last;
    first = inOrder(await list(limit, {}));
  }
  const seen = (entries: readonly AuditItem[]) => {
    for (const { id } of entries) if (id > last) last = id;
    return entries;
  };
  return {
    first: seen(first),
    next: async () => seen(await list(MAX_LIMIT, { after: last })),
    line: textOf,
  };
}

function textOf(item: AuditItem): string {
  const { at, action, target, actor } = item;
  return `${at}  ${shownAction(action)}  ${targetText(target)}  ${describeActor(actor)}  ${describeChanges(item)}`;
}

/** `key 7 mobile app` */
function targetText(target: AuditItem["target"]): string {
  if (target === null) return "-";
  const { kind, id, name } = target;
  return [kind, id, name && shortened(name, 20)].filter(Boolean).join(" ");
}

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
