import { type Config, configOf } from "../../src/config/config.ts";
import { SETTINGS } from "../../src/config/options.ts";
import { type Flags, parseOptions, type Variables } from "../../src/config/parse-options.ts";
import { UsageError } from "../../src/config/usage-error.ts";

export function parseValues(flags: Flags = {}, variables: Variables = {}) {
  const values = parseOptions(SETTINGS, flags, variables);
  if (values instanceof UsageError) throw new Error(values.message);
  return values;
}

export function parseConfig(flags: Flags = {}, variables: Variables = {}): Config {
  return configOf(parseValues(flags, variables));
}

/** The message for settings that must be rejected. */
export function usageError(flags: Flags, variables: Variables = {}): string {
  const values = parseOptions(SETTINGS, flags, variables);
  if (values instanceof UsageError) return values.message;
  throw new Error("the settings were accepted");
}
