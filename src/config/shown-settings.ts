import { describeDefault, type Option, type Options, type Source, variableOf } from "./parse-options.ts";
import { withoutSecrets } from "./usage-error.ts";

/** A setting as operators see it. */
export interface ShownSetting {
  /** The flag without its dashes. */
  readonly name: string;
  readonly variable: string;
  /** Null if there is none. */
  readonly value: string | null;
  readonly default: string | null;
  readonly source: "default" | "flag" | "variable" | "env file";
  readonly help: string;
}

interface Sources {
  /** The flag or variable that sets an option; undefined for a default. */
  source(flag: string): Source | undefined;
  /** The names of the variables that --env-file sets. */
  readonly envFileVariables: ReadonlySet<string>;
}

/** The effective values and where they come from, without secrets. */
export function shownSettings(
  options: Options,
  values: Readonly<Record<string, unknown>>,
  sources: Sources,
): ShownSetting[] {
  return Object.entries(options).map(([flag, option]) => ({
    name: flag,
    variable: variableOf(flag),
    value: shownValue(option, values[flag]),
    default: describeDefault(option) || null,
    source: sourceKind(flag, option, sources),
    help: option.help,
  }));
}

function shownValue({ type }: Option, value: unknown): string | null {
  if (value === undefined) return null;
  const text = type.format(value);
  if (text === "") return null;
  if (!type.secret) return text;
  return text.includes("://") ? withoutSecrets(text) : "…";
}

/** A value from the file that a file option names has the source of that option. */
function sourceKind(
  flag: string,
  { fileOption }: Option,
  { source, envFileVariables }: Sources,
): ShownSetting["source"] {
  const found = source(flag) ?? (fileOption === undefined ? undefined : source(fileOption));
  if (found === undefined) return "default";
  if (found.name.startsWith("--")) return "flag";
  return envFileVariables.has(found.name) ? "env file" : "variable";
}
