import { toJson } from "../api/json.ts";
import type { BodyOf, Key } from "../operator/operations.ts";
import { localInputOf, timeOfInput } from "./format.ts";

/** What the form of a key holds: text as it was typed. Without a key it is the form of a new one. */
export function formValuesOf(key?: Key) {
  const limits = key?.plan === "enterprise" ? key.limits : undefined;
  return {
    name: key?.name ?? "",
    owner: key?.owner ?? "",
    /** Separated by commas. */
    labels: key?.labels.join(", ") ?? "",
    notes: key?.notes ?? "",
    plan: key?.plan ?? "free",
    perMinute: `${limits?.perMinute ?? ""}`,
    perDay: `${limits?.perDay ?? ""}`,
    access: key?.access ?? "write",
    /** Local time; empty for never. */
    expiresAt: localInputOf(key?.expiresAt ?? null),
  };
}

export type KeyFormValues = Readonly<ReturnType<typeof formValuesOf>>;

/** `eu, mobile` → two labels. */
function labelsOf(text: string): string[] {
  const labels = text.split(",").map((label) => label.trim());
  return [...new Set(labels.filter((label) => label !== ""))];
}

const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());

export function newKeyOf(values: KeyFormValues): BodyOf<"createKey"> {
  const { name, owner, labels, notes, plan, perMinute, perDay, access, expiresAt } = values;
  return {
    name: name.trim(),
    owner: orNull(owner),
    labels: labelsOf(labels),
    notes: orNull(notes),
    plan,
    access,
    expiresAt: timeOfInput(expiresAt),
    ...(plan === "enterprise" && { limits: { perMinute: Number(perMinute), perDay: Number(perDay) } }),
  };
}

/** The fields that differ. An expiry that was not touched keeps its seconds. */
export function changesOf<Body extends object>(before: Body, after: Body): Partial<Body> {
  const old = new Map(Object.entries(before));
  const isChanged = ([name, value]: [string, unknown]) => toJson(value) !== toJson(old.get(name));
  // Fields of `after`, as they are there.
  return Object.fromEntries(Object.entries(after).filter(isChanged)) as Partial<Body>;
}
