import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SETTINGS } from "../../../src/config/options.ts";
import { parseOptions, variableOf } from "../../../src/config/parse-options.ts";

export const ROOT = join(import.meta.dir, "../../..");

export const readDeploy = (path: string) => readFileSync(join(ROOT, "deploy", path), "utf8");

/** Every variable is a setting of `petstore serve`, and its value is valid. Files that they name are not read. */
export function expectSettings(variables: Readonly<Record<string, string>>): void {
  const names = Object.keys(variables).filter((name) => name.startsWith("PETSTORE_"));
  expect(names.length).toBeGreaterThan(0);
  const known = new Set(Object.keys(SETTINGS).map(variableOf));
  expect(names.filter((name) => !known.has(name))).toEqual([]);
  const withoutFiles = Object.fromEntries(
    Object.entries(variables).filter(([name]) => !name.endsWith("_FILE")),
  );
  expect(() => parseOptions(SETTINGS, {}, withoutFiles)).not.toThrow();
}
