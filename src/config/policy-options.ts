/* The settings with which a server that starts sets the policy of all servers. The policy is in the database. */

import { DEFAULT_PLANS } from "../domain/plans.ts";
import { type Policy, POLICY_SETTINGS, type PolicyChange } from "../domain/policy.ts";
import { BAN_BOUNDS, DEFAULT_BAN } from "../domain/ban-rules.ts";
import {
  SHARED_VALUE_NAMES,
  SHARED_VALUES,
  type SharedValue,
  type SharedValueName,
  type SharedValues,
} from "../domain/shared-values.ts";
import type { Options, SettingRows, SettingsWith, ValuesOf } from "./parse-options.ts";
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

export const POLICY_OPTIONS = { ...LIMIT_OPTIONS, ...VALUE_OPTIONS } as const satisfies SettingRows;

type ClientOption = SettingsWith<typeof POLICY_OPTIONS, { concerns: "clients" }>;
const clientOptions = Object.entries(POLICY_OPTIONS).filter(([, { concerns }]) => concerns === "clients");
/** The options of the policy that the documentation for clients states. */
export const DOCUMENTED_OPTIONS = Object.fromEntries(clientOptions) as Pick<
  typeof POLICY_OPTIONS,
  ClientOption
>;

/** Returns the limits, ban rules and shared values that flags and variables set. */
export function givenPolicy(values: Partial<ValuesOf<typeof POLICY_OPTIONS>>): PolicyChange {
  return {
    plans: given(POLICY_SETTINGS.plans, (name) => values[name]),
    ban: given(POLICY_SETTINGS.ban, (name) => values[name]),
    sharedValues: givenValues(values),
  };
}

function givenValues(values: { readonly [Name in SharedValueName]?: SharedValues[Name] | undefined }) {
  const given = SHARED_VALUE_NAMES.flatMap((name) =>
    values[name] === undefined ? [] : [[name, values[name]]],
  );
  // They are values of these names.
  return Object.fromEntries(given) as Partial<SharedValues>;
}

function given<K extends string, N extends string, T>(
  names: Readonly<Record<K, N>>,
  valueOf: (name: N) => T | undefined,
): { readonly [key in K]?: T } {
  const values = Object.entries<N>(names).map(([key, name]) => [key, valueOf(name)]);
  // Only names without a value are left out.
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as { [key in K]?: T };
}

/** Returns the limits, ban rules and shared values as a user types them, by setting. */
export function formatPolicy({ plans, ban, sharedValues }: Policy): Readonly<Record<string, string>> {
  const limits = { ...byName(POLICY_SETTINGS.plans, plans), ...byName(POLICY_SETTINGS.ban, ban) };
  const values: Readonly<Record<string, unknown>> = { ...limits, ...sharedValues };
  const options: Options = POLICY_OPTIONS;
  return Object.fromEntries(
    Object.entries(options).map(([name, { type }]) => [name, formatValue(type, values[name])]),
  );
}

function byName<K extends string>(
  names: Readonly<Record<K, string>>,
  values: Readonly<Record<K, unknown>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries<string>(names).map(([key, name]) => [name, Reflect.get(values, key)]),
  );
}
