import type { Kind } from "./kinds.ts";
import { Problem, quoted } from "./problem.ts";

/** One setting: everything that the parser, `--help` and the documentation know about it. */
export interface Option<T = unknown> {
  readonly kind: Kind<T>;
  readonly help: string;
  readonly default?: T;
  /** What holds when nothing is set, where that is not one fixed value. */
  readonly otherwise?: string;
  /** May be given several times; the values are joined by commas. */
  readonly repeatable?: true;
}

export type Options = Readonly<Record<string, Option>>;
export type ValueOf<O extends Option> =
  O["kind"] extends Kind<infer T> ? (O extends { default: unknown } ? T : T | undefined) : never;
export type ValuesOf<O extends Options> = { readonly [F in keyof O]: ValueOf<O[F]> };

/** What was typed, by flag without its dashes. */
export type Given = Readonly<Record<string, readonly string[] | undefined>>;
export type Variables = Readonly<Record<string, string | undefined>>;

/** One rule for all: `--per-minute` is PETSTORE_PER_MINUTE. */
export function variableOf(flag: string): string {
  return `PETSTORE_${flag.toUpperCase().replaceAll("-", "_")}`;
}

/** Flags win over variables, variables over defaults. The first wrong value ends it. */
export function readOptions<O extends Options>(
  options: O,
  given: Given,
  variables: Variables,
): ValuesOf<O> | Problem {
  const values: Record<string, unknown> = {};
  for (const [flag, option] of Object.entries(options)) {
    const source = sourceOf(flag, given, variables);
    if (source === undefined) {
      values[flag] = option.default;
      continue;
    }
    if (source.texts.length > 1 && !option.repeatable) return new Problem(`${source.name} is given twice`);
    const text = source.texts.join(",");
    values[flag] = option.kind.read(text);
    if (values[flag] === undefined) return misread(source.name, text, option.kind);
  }
  return values as ValuesOf<O>;
}

export interface Source {
  /** As the operator wrote it: the flag or the variable. */
  readonly name: string;
  readonly texts: readonly string[];
}

/** Where a setting comes from; undefined when it is left to its default. An empty variable counts as not set. */
export function sourceOf(flag: string, given: Given, variables: Variables): Source | undefined {
  const texts = given[flag];
  if (texts !== undefined) return { name: `--${flag}`, texts };
  const name = variableOf(flag);
  const text = variables[name];
  return text === undefined || text === "" ? undefined : { name, texts: [text] };
}

export function misread(name: string, text: string, kind: Kind<unknown>): Problem {
  const remark = kind.remark?.(text);
  const why = remark === undefined ? "" : ` (${remark})`;
  if (kind.secret) return new Problem(`${name} cannot be read; it should be ${kind.expected}${why}`);
  const hint = kind.hint?.(text);
  const meant = hint === undefined ? "" : ` (did you mean ${hint}?)`;
  return new Problem(`${name} is ${quoted(text)}; it should be ${kind.expected}${meant}${why}`);
}

/** What holds when nothing is set, in words; undefined when that is nothing at all. */
export function defaultOf({ kind, default: value, otherwise }: Option): string | undefined {
  if (otherwise !== undefined) return otherwise;
  return value === undefined || typeof value === "boolean" ? undefined : kind.write(value);
}

/** The table for the documentation. */
export function markdownTable(options: Options): string {
  const rows = Object.entries(options).map(([flag, option]) => {
    const usage =
      option.kind.placeholder === undefined ? `--${flag}` : `--${flag} ${option.kind.placeholder}`;
    return [
      `\`${usage}\``,
      `\`${variableOf(flag)}\``,
      option.kind.expected,
      defaultOf(option) ?? "",
      option.help,
    ];
  });
  const header = ["Flag", "Variable", "Value", "Default", "Meaning"];
  return [header, header.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}
