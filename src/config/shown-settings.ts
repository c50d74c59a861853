import { type LimitPolicy, POLICY_SETTINGS } from "../domain/limit-policy.ts";
import { reportedSetting, type SharedSettings } from "../domain/servers.ts";
import { SETTINGS } from "./options.ts";
import { SHARED_OPTIONS } from "./shared-options.ts";
import {
  describeDefault,
  helpOf,
  type Option,
  type Options,
  type SettingRows,
  type Source,
  variableOf,
} from "./parse-options.ts";
import { maskSecretsAndPasswords } from "../domain/masks.ts";
import { formatValue } from "./value-types.ts";

interface Sources {
  /** The flag or variable that sets an option; undefined for a default. */
  source(flag: string): Source | undefined;
  /** The names of the variables that --env-file sets. */
  readonly envFileVariables: ReadonlySet<string>;
}

/** The settings as operators see them: their values and sources, without secrets. */
export function shownSettings(options: Options, values: Readonly<Record<string, unknown>>, sources: Sources) {
  return Object.entries(options).map(([flag, option]) => ({
    name: flag,
    variable: variableOf(flag),
    value: shownValue(option, values[flag]),
    default: describeDefault(option) || null,
    source: sourceKind(flag, option, sources),
    help: helpOf(option),
    isVariableOnly: option.isVariableOnly === true,
  }));
}

function shownValue({ type }: Option, value: unknown): string | null {
  if (value === undefined) return null;
  const text = formatValue(type, value);
  if (text === "") return null;
  if (!type.secret) return text;
  return text.includes("://") ? maskSecretsAndPasswords(text) : "…";
}

/** The kind of a source. A value from a file has the source of the option that names the file. */
function sourceKind(
  flag: string,
  { fileOption }: Option,
  { source, envFileVariables }: Sources,
): "default" | "flag" | "variable" | "env file" {
  const found = source(flag) ?? (fileOption === undefined ? undefined : source(fileOption));
  if (found === undefined) return "default";
  if (found.name.startsWith("--")) return "flag";
  return envFileVariables.has(found.name) ? "env file" : "variable";
}

type ShownSetting = Readonly<Record<"name" | "variable" | "source", string>> &
  Readonly<Record<"value" | "default", string | null>>;

/** Returns what a server reports about its settings. `publicUrl` is in effect whether or not it is a setting. */
export function sharedSettings(shown: readonly ShownSetting[], publicUrl: string): SharedSettings {
  const settings: SettingRows = SETTINGS;
  // What is stored is the same on all servers.
  const compared = shown.filter(
    ({ name }) => settings[name]?.concerns !== "machine" && !(name in SHARED_OPTIONS),
  );
  return {
    settings: compared.map(({ name, value, default: initial }) => {
      const text = (name === "public-url" ? publicUrl : value) || initial || "not set";
      return reportedSetting(name, settings[name]?.repeatable ? sorted(text) : text);
    }),
    setsLimits: shown
      .filter(({ name, source }) => name in SHARED_OPTIONS && source !== "default")
      .map(({ name, variable, source }) => (source === "flag" ? `--${name}` : variable)),
  };
}

/** The order of a list has no meaning, and servers with the same items do not differ. */
const sorted = (list: string): string => [...new Set(list.split(/, ?/))].toSorted().join(",");

/** Returns the values as a user types them, by setting. */
export function formatPolicy({ plans, ban, sharedValues }: LimitPolicy): Readonly<Record<string, string>> {
  const limits = { ...byName(POLICY_SETTINGS.plans, plans), ...byName(POLICY_SETTINGS.ban, ban) };
  const values: Readonly<Record<string, unknown>> = { ...limits, ...sharedValues };
  const options: Options = SHARED_OPTIONS;
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
