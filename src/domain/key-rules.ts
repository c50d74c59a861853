import { grouped } from "../text/formatting.ts";
import { Rejection } from "../api/errors.ts";
import type { ApiKey, KeyChange } from "./api-keys.ts";
import { KEY_LABEL, KEY_NOTES, MAX_LABELS } from "./key-fields.ts";
import type { PlanName } from "./plans.ts";

/** Line feeds and tabs are part of a text. */
const CONTROL_CHARACTER = /[^\P{Cc}\n\t]/u;
const NOTES_EXPECTED = `1 to ${grouped(KEY_NOTES.maxLength)} characters, not all of them blank, without control characters`;
/** The command line separates labels by commas. */
const LABELS_EXPECTED = `at most ${MAX_LABELS} different labels, each 1 to ${KEY_LABEL.maxLength} characters on one line, not all of them blank, without commas`;

export const LIMITS_REQUIRED = invalid(
  "limits",
  "given for the enterprise plan: each key has its own limits",
);

/** Checks the rules of a new key, or of a change, that schemas cannot express. */
export function invalidKeyField(
  fields: KeyChange,
  { now, key }: { now: number; key?: ApiKey },
): Rejection<"invalid_body"> | undefined {
  const { notes, labels, expiresAt } = fields;
  if (notes && CONTROL_CHARACTER.test(notes)) return invalid("notes", NOTES_EXPECTED);
  if (labels && !areValidLabels(labels)) return invalid("labels", LABELS_EXPECTED);
  return invalidExpiry(expiresAt, now) ?? invalidLimits(fields, key);
}

/** Checks the expiry of a key or of an operator. */
export function invalidExpiry(expiresAt: number | null | undefined, now: number) {
  return typeof expiresAt === "number" && expiresAt <= now
    ? invalid("expiresAt", "in the future")
    : undefined;
}

/** An Enterprise key must have limits of its own; a key of another plan has the limits of its plan. */
function invalidLimits({ plan, limits }: KeyChange, key: ApiKey | undefined) {
  const newPlan: PlanName | undefined = plan ?? key?.plan;
  if (newPlan !== "enterprise") {
    return limits && invalid("limits", `given for the enterprise plan only; the plan is ${newPlan}`);
  }
  const hasLimits = (limits ?? key?.limits) !== undefined;
  return hasLimits ? undefined : LIMITS_REQUIRED;
}

function areValidLabels(labels: readonly string[]): boolean {
  const isUnique = new Set(labels.map((label) => label.toLowerCase())).size === labels.length;
  return isUnique && !labels.some((label) => label.includes(","));
}

function invalid(field: string, expected: string): Rejection<"invalid_body"> {
  return new Rejection("invalid_body", [{ path: [field], message: `must be ${expected}` }]);
}
