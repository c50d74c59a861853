import type { Key } from "./admin-api.ts";
import type { BodyOf } from "../operator/operations.ts";
import { localInput } from "./format.ts";

/** What the form of a key holds: text as it was typed. */
export interface KeyFormValues {
  readonly name: string;
  readonly owner: string;
  /** Separated by commas. */
  readonly labels: string;
  readonly notes: string;
  readonly plan: Key["plan"];
  readonly perMinute: string;
  readonly perDay: string;
  readonly access: Key["access"];
  /** Local time; empty for never. */
  readonly expiresAt: string;
}

export const NEW_KEY: KeyFormValues = {
  name: "",
  owner: "",
  labels: "",
  notes: "",
  plan: "free",
  perMinute: "",
  perDay: "",
  access: "write",
  expiresAt: "",
};

export function valuesOf(key: Key): KeyFormValues {
  return {
    name: key.name,
    owner: key.owner ?? "",
    labels: key.labels.join(", "),
    notes: key.notes ?? "",
    plan: key.plan,
    perMinute: key.plan === "enterprise" ? `${key.limits.perMinute}` : "",
    perDay: key.plan === "enterprise" ? `${key.limits.perDay}` : "",
    access: key.access,
    expiresAt: key.expiresAt === null ? "" : localInput(Date.parse(key.expiresAt)),
  };
}

/** `eu, mobile` → two labels. */
function labelsOf(text: string): string[] {
  const labels = text.split(",").map((label) => label.trim());
  return [...new Set(labels.filter((label) => label !== ""))];
}

const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());

function limitsOf({ plan, perMinute, perDay }: KeyFormValues) {
  return plan === "enterprise" ? { limits: { perMinute: Number(perMinute), perDay: Number(perDay) } } : {};
}

function expiryOf({ expiresAt }: KeyFormValues): string | null {
  return expiresAt === "" ? null : new Date(expiresAt).toISOString();
}

export function newKeyOf(values: KeyFormValues): BodyOf<"createKey"> {
  const { name, owner, labels, notes, plan, access } = values;
  return {
    name: name.trim(),
    owner: orNull(owner),
    labels: labelsOf(labels),
    notes: orNull(notes),
    plan,
    access,
    expiresAt: expiryOf(values),
    ...limitsOf(values),
  };
}

/** The fields that differ. An expiry that was not touched keeps its seconds. */
export function changesOf(before: KeyFormValues, after: KeyFormValues): BodyOf<"updateKey"> {
  const isChanged = (...names: (keyof KeyFormValues)[]) => names.some((name) => before[name] !== after[name]);
  return {
    ...(isChanged("name") && { name: after.name.trim() }),
    ...(isChanged("owner") && { owner: orNull(after.owner) }),
    ...(isChanged("labels") && { labels: labelsOf(after.labels) }),
    ...(isChanged("notes") && { notes: orNull(after.notes) }),
    ...(isChanged("plan") && { plan: after.plan }),
    ...(isChanged("plan", "perMinute", "perDay") && limitsOf(after)),
    ...(isChanged("access") && { access: after.access }),
    ...(isChanged("expiresAt") && { expiresAt: expiryOf(after) }),
  };
}
