import { grouped } from "../api/formatting.ts";
import { rejection, type Rejection } from "../api/errors.ts";
import type { ApiKey, KeyChange, PlanName } from "./api-keys.ts";

/** The texts that an operator writes about a key: which are valid, and how messages describe those. */
interface TextRule {
  readonly maxLength: number;
  /** Completes "it must be …". */
  readonly expected: string;
  isValid(text: string): boolean;
}

/** Control characters, lone surrogates, and the separators of lines and paragraphs. */
const NOT_ON_ONE_LINE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
/** Line feeds and tabs are part of a text. */
const NOT_IN_A_TEXT = /[^\P{Cc}\n\t]|\p{Cs}/u;

/** `maxLength` counts code points. */
export function lineOf(maxLength: number): TextRule {
  return {
    maxLength,
    expected: `1 to ${grouped(maxLength)} characters on one line, not all of them blank`,
    isValid: (text) => isWithin(text, maxLength) && !NOT_ON_ONE_LINE.test(text),
  };
}

function isWithin(text: string, maxLength: number): boolean {
  return text.trim() !== "" && text.length <= 2 * maxLength && [...text].length <= maxLength;
}

export const KEY_NAME = lineOf(100);
export const KEY_OWNER = lineOf(200);
export const KEY_NOTES: TextRule = {
  maxLength: 2_000,
  expected: "1 to 2,000 characters, not all of them blank, without control characters",
  isValid: (text) => isWithin(text, 2_000) && !NOT_IN_A_TEXT.test(text),
};
const LABEL_LINE = lineOf(50);
/** The command line separates labels by commas. */
export const KEY_LABEL: TextRule = {
  maxLength: LABEL_LINE.maxLength,
  expected: "1 to 50 characters on one line, not all of them blank, without commas",
  isValid: (text) => LABEL_LINE.isValid(text) && !text.includes(","),
};
export const MAX_LABELS = 20;

/** For how long the previous secrets of a key may work when it is rotated. */
export const MAX_OVERLAP_MS = 30 * 24 * 3_600_000;

export const LIMITS_REQUIRED = invalid(
  "limits",
  "given for the enterprise plan: each key has its own limits",
);

/** Checks what the schemas of a new key and of a change do not say. The message begins with the name of the field. */
export function invalidKeyField(
  fields: KeyChange,
  { now, key }: { now: number; key?: ApiKey },
): Rejection<"invalid_body"> | undefined {
  const { notes, labels, expiresAt } = fields;
  if (typeof notes === "string" && !KEY_NOTES.isValid(notes)) return invalid("notes", KEY_NOTES.expected);
  if (labels && !areValidLabels(labels)) {
    return invalid("labels", `at most ${MAX_LABELS} different labels, each ${KEY_LABEL.expected}`);
  }
  if (typeof expiresAt === "number" && expiresAt <= now) return invalid("expiresAt", "in the future");
  return invalidLimits(fields, key);
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
  return labels.length <= MAX_LABELS && isUnique && labels.every(KEY_LABEL.isValid);
}

function invalid(field: string, expected: string): Rejection<"invalid_body"> {
  return rejection("invalid_body", `${field} must be ${expected}.`);
}
