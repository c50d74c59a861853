import { printable } from "../../config/usage-error.ts";
import { grouped } from "../../contract/formatting.ts";
import type { KeyView, SecretView, WindowView } from "../../domain/key-view.ts";
import { columns, formatLimits } from "../output.ts";

/** A key as `keys show` and `keys find` print it. */
export function keyTable(view: KeyView, extra: readonly (readonly string[])[] = []): string {
  return columns([
    ["Key", String(view.id)],
    ["Name", printable(view.name)],
    ["Owner", view.owner === null ? "-" : printable(view.owner)],
    ...(view.notes === null ? [] : noteRows(view.notes)),
    ["Labels", view.labels.length === 0 ? "-" : view.labels.map(printable).join(", ")],
    ["Plan", `${view.plan}: ${formatLimits(view.limits)}`],
    ["Access", view.access],
    ["State", describeState(view)],
    ...secretRows(view.secrets),
    ...extra,
    ["This minute", describeWindow(view.usage?.minute)],
    ["This day", describeWindow(view.usage?.day)],
    ["Strikes", String(view.strikes ?? "?")],
    ["Last used", view.lastUsedAt ?? "never"],
    ["Created", view.createdAt],
    ["Expires", view.expiresAt ?? "never"],
    ...(view.revokedAt === null ? [] : [["Revoked", view.revokedAt]]),
  ]);
}

function noteRows(notes: string): string[][] {
  return notes.split("\n").map((line, index) => [index === 0 ? "Notes" : "", printable(line)]);
}

/** One row for each that works: after a roll, the previous ones until their overlap ends. */
function secretRows(secrets: readonly SecretView[]): string[][] {
  return secrets.map(({ hint, createdAt, validUntil }, index) => {
    const since = createdAt === null ? "" : `, created at ${createdAt}`;
    const end = validUntil === null ? "" : `, valid until ${validUntil}`;
    return [index === 0 ? "Secret" : "", `${hint ?? "of an earlier release"}${since}${end}`];
  });
}

function describeState({ state, bannedUntil, usage }: KeyView): string {
  if (state === "banned") return `banned until ${bannedUntil}`;
  return state === "active" && usage === null ? "active, unless it is banned" : state;
}

function describeWindow(window: WindowView | undefined): string {
  if (window === undefined) return "?";
  const { used, limit, resetsAt } = window;
  const usage = `${grouped(used)} of ${grouped(limit)} used`;
  return resetsAt === null ? usage : `${usage}, resets at ${resetsAt}`;
}
