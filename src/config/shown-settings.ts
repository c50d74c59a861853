import {
  describeDefault,
  helpOf,
  type Option,
  type Options,
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
