import { reportedSetting, type ReportedSettings } from "../domain/servers.ts";
import { SETTINGS } from "./options.ts";
import type { SettingRows } from "./parse-options.ts";

type ShownSetting = Readonly<Record<"name" | "variable" | "source", string>> &
  Readonly<Record<"value" | "default", string | null>>;

/** Returns what a server reports about its settings. `publicUrl` is in effect whether or not it is a setting. */
export function reportedSettings(shown: readonly ShownSetting[], publicUrl: string): ReportedSettings {
  const settings: SettingRows = SETTINGS;
  const compared = shown.filter(({ name }) => settings[name]?.concerns !== "machine");
  return {
    settings: compared.map(({ name, value, default: initial }) => {
      const text = (name === "public-url" ? publicUrl : value) || initial || "not set";
      return reportedSetting(name, settings[name]?.repeatable ? sorted(text) : text);
    }),
  };
}

/** The order of a list has no meaning, and servers with the same items do not differ. */
const sorted = (list: string): string => [...new Set(list.split(/, ?/))].toSorted().join(",");
