import { reportedSetting, type ReportedSettings } from "../domain/servers.ts";
import { SETTINGS } from "./options.ts";
import type { SettingRows } from "./parse-options.ts";
import { POLICY_OPTIONS } from "./policy-options.ts";

type ShownSetting = Readonly<Record<"name" | "variable" | "source", string>> &
  Readonly<Record<"value" | "default", string | null>>;

/** Returns what a server reports about its settings. `publicUrl` is in effect whether or not it is a setting. */
export function reportedSettings(shown: readonly ShownSetting[], publicUrl: string): ReportedSettings {
  const settings: SettingRows = SETTINGS;
  // The policy is stored, and the same on all servers.
  const compared = shown.filter(
    ({ name }) => settings[name]?.concerns !== "machine" && !(name in POLICY_OPTIONS),
  );
  return {
    settings: compared.map(({ name, value, default: initial }) => {
      const text = (name === "public-url" ? publicUrl : value) || initial || "not set";
      return reportedSetting(name, settings[name]?.repeatable ? sorted(text) : text);
    }),
    setsPolicy: shown
      .filter(({ name, source }) => name in POLICY_OPTIONS && source !== "default")
      .map(({ name, variable, source }) => (source === "flag" ? `--${name}` : variable)),
  };
}

/** The order of a list has no meaning, and servers with the same items do not differ. */
const sorted = (list: string): string => [...new Set(list.split(/, ?/))].toSorted().join(",");
