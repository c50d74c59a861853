import { LONGEST_BAN_MS } from "./ban-rules.ts";
import { DAY_MS } from "../text/time-units.ts";

/** A single value of the policy (policy.ts), besides limits and ban rules. */
export interface SharedValue {
  readonly kind: "integer" | "duration" | "duration or forever";
  /** The bounds; of a duration in milliseconds. */
  readonly min: number;
  readonly max: number;
  /** The value until one is stored. */
  readonly initial: number | null;
  /** What concerns clients is in their documentation. */
  readonly concerns: "service" | "clients";
  readonly help: string;
}

/**
 * The values by the settings that set them (config/policy-options.ts). Forever is null.
 */
export const SHARED_VALUES = {
  "audit-retention": {
    kind: "duration or forever",
    // Where PostgreSQL counts, the banned keys are found by these entries.
    min: LONGEST_BAN_MS,
    max: 3_650 * DAY_MS,
    initial: 400 * DAY_MS,
    concerns: "service",
    help: "Age at which entries of the audit trail are deleted, for all servers",
  },
} as const satisfies Readonly<Record<string, SharedValue>>;

export type SharedValueName = keyof typeof SHARED_VALUES;
export type SharedValues = {
  readonly [Name in SharedValueName]: (typeof SHARED_VALUES)[Name] extends { kind: "duration or forever" }
    ? number | null
    : number;
};

/** The names of the values, which are those of their settings. */
export const SHARED_VALUE_NAMES = Object.keys(SHARED_VALUES) as readonly SharedValueName[];

const initialValues = Object.entries<SharedValue>(SHARED_VALUES).map(([name, { initial }]) => [
  name,
  initial,
]);
/** The values until others are stored: the rows have values of their kinds. */
export const INITIAL_VALUES = Object.fromEntries(initialValues) as SharedValues;

/** Reads a value as `String` writes it. */
export function parseStored(text: string): number | null {
  return text === "null" ? null : Number(text);
}
