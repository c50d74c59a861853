import { UsageError } from "./usage-error.ts";
import { maskUserAndQuery } from "../domain/masks.ts";
import { readTextFile } from "./read-file.ts";
import { quoted, quotedPath } from "./quoted.ts";
import { formatValue, type ValueType } from "./value-types.ts";

/** An option. The parser, --help and the documentation derive from it. */
export interface Option<T = unknown> {
  readonly type: ValueType<T>;
  readonly help: string;
  readonly default?: T;
  /** The description of a default that is not one fixed value. */
  readonly defaultText?: string;
  readonly isRequired?: true;
  /** Whether the option has no flag, because other users could read it in a list of processes. */
  readonly isVariableOnly?: true;
  /** Whether the flag can be repeated. The values are joined by commas. */
  readonly repeatable?: true;
  /** Another option that names a file with the value. If the option is repeatable, the file has one value per line. */
  readonly fileOption?: string;
  /** For the name of a file of settings: whether a server reads it again when it changes. */
  readonly isFollowed?: boolean;
  /** Whether a server connects to the URL. */
  readonly isDestination?: true;
}

/** A setting of a server. */
export interface SettingRow extends Option {
  /**
   * Whether the value belongs to a machine or to the service. Servers of one service should have the same value: each
   * reports its own, and one that differs is shown. What concerns clients is in their documentation, too.
   */
  readonly concerns: "machine" | "service" | "clients";
}
export type SettingRows = Readonly<Record<string, SettingRow>>;

/** The names of the options with certain properties. */
export type SettingsWith<O extends Options, Properties> = {
  [Name in keyof O]: O[Name] extends Properties ? Name : never;
}[keyof O];

export type Options = Readonly<Record<string, Option>>;
type ValueOf<O extends Option> =
  O["type"] extends ValueType<infer T> ? (O extends { default: unknown } ? T : T | undefined) : never;
export type ValuesOf<O extends Options> = { readonly [F in keyof O]: ValueOf<O[F]> };

/** The values typed for each flag. The names have no dashes. */
export type Flags = Readonly<Record<string, readonly string[] | undefined>>;
export type Variables = Readonly<Record<string, string | undefined>>;

/** The variable of a flag: that of `--per-minute` is PETSTORE_PER_MINUTE. */
export function variableOf(flag: string): string {
  return `PETSTORE_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/** Parses all options. Flags override variables, and variables override defaults. Throws the first UsageError. */
export function parseOptions<O extends Options>(options: O, flags: Flags, variables: Variables): ValuesOf<O> {
  const values: Record<string, unknown> = {};
  for (const [flag, option] of Object.entries(options)) {
    const { name, texts } = findSource(flag, option, { flags, variables }) ?? {};
    // A flag overrides a variable that names a file, so the file is not read.
    if (option.fileOption !== undefined && name === sourceOf(flag, flags, variables)?.name)
      values[option.fileOption] = undefined;
    if (texts && texts.length > 1 && !option.repeatable)
      throw new UsageError(`${name} is given more than once`);
    values[flag] = texts ? parseValue(`${name}`, texts.join(","), option.type) : option.default;
  }
  return values as ValuesOf<O>;
}

export interface Source {
  /** The flag or the variable as the user wrote it. */
  readonly name: string;
  readonly texts: readonly string[];
}

/**
 * Finds where a value comes from. Returns undefined if the option has its default. An empty variable counts as not set.
 */
export function sourceOf(flag: string, flags: Flags, variables: Variables): Source | undefined {
  const texts = flags[flag];
  if (texts) return { name: `--${flag}`, texts };
  const name = variableOf(flag);
  const text = variables[name];
  return text ? { name, texts: [text] } : undefined;
}

/** Finds the source like `sourceOf`, or reads the file that the file option names. */
function findSource(
  flag: string,
  option: Option,
  { flags, variables }: { flags: Flags; variables: Variables },
): Source | undefined {
  const { fileOption } = option;
  const value = sourceOf(flag, flags, variables);
  const file = fileOption === undefined ? undefined : sourceOf(fileOption, flags, variables);
  if (file === undefined) return value;
  if (value) {
    const [isFlag, isFileFlag] = [value, file].map(({ name }) => name.startsWith("--"));
    if (isFlag === isFileFlag)
      throw new UsageError(`${value.name} and ${file.name} exclude each other; use one of them`);
    if (isFlag) return value;
  }
  return readFileOption(option, file);
}

/** Reads the value from a file, which has one line for each value. */
function readFileOption(
  { repeatable }: Pick<Option, "repeatable">,
  { name, texts: [path = ""] }: Source,
): Source {
  const lines = readTextFile(name, path)
    .split("\n")
    .flatMap((line) => line.trim() || []);
  if (lines.length === 0) throw new UsageError(`${name} is ${quotedPath(path)}; the file is empty`);
  if (lines.length > 1 && !repeatable)
    throw new UsageError(`${name} is ${quotedPath(path)}; the file must have one line`);
  return { name, texts: lines };
}

/** Reads the value of an option from its file, which may have changed. Throws UsageError. */
export function readFromFile<T>(
  option: Pick<Option<T>, "type" | "fileOption" | "repeatable">,
  path: string,
): T {
  const name = `--${option.fileOption}`;
  return parseValue(name, readFileOption(option, { name, texts: [path] }).texts.join(","), option.type);
}

/** Parses a value. `name` is what the user wrote before it. */
export function parseValue<T>(name: string, text: string, type: ValueType<T>): T {
  const value = type.parse(text);
  if (value !== undefined) return value;
  const shown = type.isUrl ? maskUserAndQuery(text) : text;
  const given = type.secret ? "is not valid" : `is ${quoted(shown)}`;
  const hint = type.hint?.(text);
  throw new UsageError(`${name} ${given}; it must be ${type.expected}${hint ? ` (${hint})` : ""}`);
}

/** Describes the default; undefined for an option without one. */
export function describeDefault({ type, default: value, defaultText }: Option): string | undefined {
  if (defaultText !== undefined) return defaultText;
  return value === undefined || typeof value === "boolean" ? undefined : formatValue(type, value);
}

/** The help text, with what the other properties of the option say. */
export function helpOf({ help, isFollowed, repeatable, isVariableOnly }: Option): string {
  const parts = [help];
  if (isFollowed !== undefined)
    parts.push(isFollowed ? "read again when it changes" : "read at the start only");
  if (repeatable && !isVariableOnly) parts.push("can be repeated");
  return parts.join("; ");
}

/** An option as it is typed, such as `--port N` or `PETSTORE_ADMIN_TOKEN`. */
export function flagText(flag: string, { type, isVariableOnly }: Option): string {
  if (isVariableOnly) return variableOf(flag);
  return `--${flag} ${type.placeholder ?? ""}`.trimEnd();
}
