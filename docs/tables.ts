import { readFileSync, writeFileSync } from "node:fs";
import { configurationTables } from "../src/config/options.ts";

/** Puts generated tables between their markers: `bun docs/tables.ts` after a setting was added or changed. */
const README = new URL("../README.md", import.meta.url);

export function withTables(text: string): string {
  const { settings } = configurationTables();
  return text.replace(
    /(<!-- settings -->\n)[\s\S]*?(<!-- \/settings -->)/,
    (_match, begin: string, end: string) => `${begin}\n${settings.trim()}\n\n${end}`,
  );
}

export function readme(): string {
  return readFileSync(README, "utf8");
}

if (import.meta.main) writeFileSync(README, withTables(readme()));
