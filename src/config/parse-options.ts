import { quoted, quotedPath, readTextFile, UsageError } from "./usage-error.ts";
import { formatValue, type ValueType } from "./value-types.ts";

/** One option: the parser, --help and the documentation take everything from here. */
export interface Option<T = unknown> {
  readonly type: ValueType<T>;
  readonly help: string;
  readonly default?: T;
  /** Describes a default that is not one fixed value. */
  readonly defaultText?: string;
  readonly isRequired?: true;
  /** Several flags are joined by commas. */
  readonly repeatable?: true;
  /** Another option, which names a file that contains the value: one per line if the option is repeatable. */
  readonly fileOption?: string;
}

export type Options = Readonly<Record<string, Option>>;
type ValueOf<O extends Option> =
  O["type"] extends ValueType<infer T> ? (O extends { default: unknown } ? T : T | undefined) : never;
export type ValuesOf<O extends Options> = { readonly [F in keyof O]: ValueOf<O[F]> };

/** The values typed for each flag; the names are without dashes. */
export type Flags = Readonly<Record<string, readonly string[] | undefined>>;
export type Variables = Readonly<Record<string, string | undefined>>;

/** `--per-minute` is PETSTORE_PER_MINUTE. */
export function variableOf(flag: string): string {
  return `PETSTORE_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/** Flags override variables, variables override defaults. Reports the first invalid value. */
export function parseOptions<O extends Options>(
  options: O,
  flags: Flags,
  variables: Variables,
): ValuesOf<O> | UsageError {
  const values: Record<string, unknown> = {};
  for (const [flag, option] of Object.entries(options)) {
    const source = findSource(flag, option, { flags, variables });
    if (source instanceof UsageError) return source;
    if (source === undefined) {
      values[flag] = option.default;
      continue;
    }
    if (source.texts.length > 1 && !option.repeatable)
      return new UsageError(`${source.name} is given more than once`);
    const text = source.texts.join(",");
    values[flag] = option.type.parse(text);
    if (values[flag] === undefined) return invalidValue(source.name, text, option.type);
  }
  return values as ValuesOf<O>;
}

export interface Source {
  /** The flag or the variable, as the user wrote it. */
  readonly name: string;
  readonly texts: readonly string[];
}

/** Undefined when the option has its default. An empty variable counts as not set. */
export function sourceOf(flag: string, flags: Flags, variables: Variables): Source | undefined {
  return flagSource(flag, flags) ?? variableSource(flag, variables);
}

function flagSource(flag: string, flags: Flags): Source | undefined {
  const texts = flags[flag];
  return texts && { name: `--${flag}`, texts };
}

function variableSource(flag: string, variables: Variables): Source | undefined {
  const name = variableOf(flag);
  const text = variables[name];
  return text === undefined || text === "" ? undefined : { name, texts: [text] };
}

/** As sourceOf, or the content of the file that the option's file option names. */
function findSource(
  flag: string,
  { fileOption, repeatable }: Option,
  { flags, variables }: { flags: Flags; variables: Variables },
): Source | UsageError | undefined {
  if (fileOption === undefined) return sourceOf(flag, flags, variables);
  for (const find of [
    (name: string) => flagSource(name, flags),
    (name: string) => variableSource(name, variables),
  ]) {
    const [value, file] = [find(flag), find(fileOption)];
    if (value && file)
      return new UsageError(`${value.name} and ${file.name} exclude each other; use one of them`);
    if (file) return readSource(file, repeatable);
    if (value) return value;
  }
  return undefined;
}

function readSource({ name, texts }: Source, repeatable: true | undefined): Source | UsageError {
  const [path = "", ...others] = texts;
  if (others.length > 0) return new UsageError(`${name} is given more than once`);
  const content = readTextFile(name, path);
  if (content instanceof UsageError) return content;
  const lines = content.split("\n").flatMap((line) => line.trim() || []);
  if (lines.length === 0) return new UsageError(`${name} is ${quotedPath(path)}; the file is empty`);
  return lines.length > 1 && !repeatable
    ? new UsageError(`${name} is ${quotedPath(path)}; the file must have one line`)
    : { name, texts: lines };
}

export function invalidValue(name: string, text: string, type: ValueType<unknown>): UsageError {
  const remark = type.remark?.(text);
  const cause = remark === undefined ? "" : ` (${remark})`;
  if (type.secret) return new UsageError(`${name} is not valid; it must be ${type.expected}${cause}`);
  const hint = type.hint?.(text);
  const suggestion = hint === undefined ? "" : ` (did you mean ${hint}?)`;
  return new UsageError(`${name} is ${quoted(text)}; it must be ${type.expected}${suggestion}${cause}`);
}

/** Values as a user types them, by flag. */
export function formatOptions<O extends Options>(options: O, values: ValuesOf<O>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(options).map(([flag, { type }]) => [flag, formatValue(type, values[flag])]),
  );
}

/** Undefined for an option without a default. */
export function describeDefault({ type, default: value, defaultText }: Option): string | undefined {
  if (defaultText !== undefined) return defaultText;
  return value === undefined || typeof value === "boolean" ? undefined : formatValue(type, value);
}

/** `--port N`. */
export function flagUsage(flag: string, { type }: Option): string {
  return `--${flag} ${type.placeholder ?? ""}`.trimEnd();
}
