/* The settings whose values are in the database, for all servers. */

import { DEFAULT_PLANS } from "../domain/plans.ts";
import { BAN_BOUNDS, DEFAULT_BAN } from "../domain/rate-limit.ts";
import {
  SHARED_VALUES,
  type SharedValue,
  type SharedValueName,
  type SharedValues,
} from "../domain/shared-values.ts";
import type { SettingRows, SettingsWith } from "./parse-options.ts";
import {
  duration,
  durationOrForever,
  formatValue,
  integerWithin,
  limitPair,
  type ValueType,
} from "./value-types.ts";

/** Makes an option whose value is stored in the database, for all servers. */
function shared<T>(type: ValueType<T>, first: T, help: string) {
  const defaultText = `stored, or ${formatValue(type, first)}`;
  return { type, defaultText, help } as const;
}

/** Makes such an option for limits or ban rules, which the documentation states. */
function limit<T>(type: ValueType<T>, first: T, help: string) {
  return { ...shared(type, first, help), concerns: "clients" } as const;
}

/** Enterprise has no option here: each Enterprise key has its own limits. */
export const LIMIT_OPTIONS = {
  "free-limits": limit(
    limitPair,
    DEFAULT_PLANS.free,
    "Rate limits of the Free plan, for all servers: requests per minute and per day",
  ),
  "pro-limits": limit(limitPair, DEFAULT_PLANS.pro, "Rate limits of the Pro plan"),
  "business-limits": limit(limitPair, DEFAULT_PLANS.business, "Rate limits of the Business plan"),
  "anonymous-limits": limit(
    limitPair,
    DEFAULT_PLANS.anonymous,
    "Rate limits of an address without a valid key, and again for pages, on each server",
  ),
  "ban-strikes": limit(
    integerWithin(BAN_BOUNDS.strikes),
    DEFAULT_BAN.strikes,
    "Strikes that ban a key: requests rejected after the grace period, at most one for each",
  ),
  "ban-grace": limit(
    duration(BAN_BOUNDS.graceMs),
    DEFAULT_BAN.graceMs,
    "Grace period after the first 429 and after each strike, in which no request is a strike",
  ),
  "ban-length": limit(
    duration(BAN_BOUNDS.lengthMs),
    DEFAULT_BAN.lengthMs,
    "Duration of a first ban; each further ban within 24 hours is twice as long",
  ),
  "ban-max-length": limit(
    duration(BAN_BOUNDS.maxLengthMs),
    DEFAULT_BAN.maxLengthMs,
    "Maximum duration of a ban; a value below --ban-length means --ban-length",
  ),
} as const satisfies SettingRows;

const TYPES: Readonly<Record<SharedValue["kind"], (bounds: SharedValue) => ValueType<number | null>>> = {
  integer: integerWithin,
  duration,
  "duration or forever": durationOrForever,
};

type ValueOptions = {
  readonly [Name in SharedValueName]: ReturnType<typeof shared<SharedValues[Name]>> &
    Pick<(typeof SHARED_VALUES)[Name], "concerns">;
};
const valueOptions = Object.entries<SharedValue>(SHARED_VALUES).map(([name, value]) => {
  const { kind, initial, concerns, help } = value;
  return [name, { ...shared(TYPES[kind](value), initial, help), concerns }];
});
// The types of the values are those of their kinds.
export const VALUE_OPTIONS = Object.fromEntries(valueOptions) as ValueOptions;

/** A server that starts with one of them sets it for all servers. */
export const SHARED_OPTIONS = { ...LIMIT_OPTIONS, ...VALUE_OPTIONS } as const satisfies SettingRows;

type ClientOption = SettingsWith<typeof SHARED_OPTIONS, { concerns: "clients" }>;
const clientOptions = Object.entries(SHARED_OPTIONS).filter(([, { concerns }]) => concerns === "clients");
/** Those that the documentation for clients states. */
export const DOCUMENTED_OPTIONS = Object.fromEntries(clientOptions) as Pick<
  typeof SHARED_OPTIONS,
  ClientOption
>;
