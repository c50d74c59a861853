import { type Config, configOf } from "../../src/config/config.ts";
import { SETTINGS } from "../../src/config/options.ts";
import { shownSettings } from "../../src/config/shown-settings.ts";
import { type Flags, parseOptions, type Variables } from "../../src/config/parse-options.ts";
import { messageOf } from "../../src/runtime/message-of.ts";

export const parseValues = (flags: Flags = {}, variables: Variables = {}) =>
  parseOptions(SETTINGS, flags, variables);

export function parseConfig(flags: Flags = {}, variables: Variables = {}): Config {
  return configOf(parseValues(flags, variables));
}

/** The settings as the console shows them, with flags alone. */
export function shownWith(flags: Flags) {
  return shownSettings(SETTINGS, parseValues(flags), {
    source: () => undefined,
    envFileVariables: new Set<string>(),
  });
}

/** The message for settings that must be rejected. */
export function usageError(flags: Flags, variables: Variables = {}): string {
  try {
    parseValues(flags, variables);
  } catch (error) {
    return messageOf(error);
  }
  throw new Error("the settings were accepted");
}
