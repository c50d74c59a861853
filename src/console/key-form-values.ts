import type { BodyOf, Key } from "../operator/operations.ts";
import { localInputOf, timeOfInput } from "../pages/format.ts";

type NewKeyBody = BodyOf<"createKey">;
type Limits = Key["limits"];
/** The body with every field. Only an Enterprise key has limits of its own. */
type WholeBody = Required<Omit<NewKeyBody, "limits">> & Pick<NewKeyBody, "limits">;

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
  } satisfies Record<Exclude<keyof NewKeyBody, "limits"> | keyof Limits, string>;
}

export type KeyFormValues = Readonly<ReturnType<typeof formValuesOf>>;

/** `eu, mobile` → two labels. */
function labelsOf(text: string): string[] {
  const labels = text.split(",").map((label) => label.trim());
  return [...new Set(labels.filter((label) => label !== ""))];
}

const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());

export function newKeyOf(values: KeyFormValues): WholeBody {
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
