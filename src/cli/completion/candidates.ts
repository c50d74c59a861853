import type { ValueType } from "../../config/value-types.ts";
import type { Command } from "../command.ts";

/** What a shell offers for one word of a command line. */
export type Candidates =
  | { readonly kind: "files" | "directories" }
  | { readonly kind: "words"; readonly words: readonly string[] }
  /** Anything: an ID, a number, a name. */
  | { readonly kind: "text"; readonly placeholder: string };

export interface CompletedFlag {
  /** With its dashes. */
  readonly flag: string;
  readonly help: string;
  /** Undefined for a switch. */
  readonly value: Candidates | undefined;
}

export interface CompletedCommand {
  /** `keys create` has two. */
  readonly name: string;
  readonly summary: string;
  readonly positionals: readonly Candidates[];
  readonly flags: readonly CompletedFlag[];
}

const HELP: CompletedFlag = { flag: "--help", help: "Show how to use the command", value: undefined };
export const VERSION: CompletedFlag = { flag: "--version", help: "Show the version", value: undefined };

export function completedCommands(commands: readonly Command[]): CompletedCommand[] {
  return commands.map(({ name, summary, positionals, options }) => ({
    name,
    summary,
    positionals: Object.entries(positionals).map(([label, type]) => candidatesOf(type, label)),
    flags: [
      ...Object.entries(options).map(([flag, { help, type }]) => ({
        flag: `--${flag}`,
        help,
        value: type.placeholder === undefined ? undefined : candidatesOf(type, type.placeholder),
      })),
      HELP,
    ],
  }));
}

function candidatesOf({ choices, placeholder = "" }: ValueType<unknown>, label: string): Candidates {
  if (choices) return { kind: "words", words: choices };
  if (placeholder.startsWith("FILE")) return { kind: "files" };
  return placeholder.startsWith("DIR") ? { kind: "directories" } : { kind: "text", placeholder: label };
}

export interface NextWord {
  readonly word: string;
  readonly summary: string;
}

/** The commands and groups that a command line can begin with. */
export function firstWords(commands: readonly CompletedCommand[]): NextWord[] {
  const words = new Map<string, string>();
  for (const { name, summary } of commands) {
    const [first = "", ...rest] = name.split(" ");
    if (!words.has(first))
      words.set(first, rest.length === 0 ? summary : `Commands on ${first.replaceAll("-", " ")}`);
  }
  words.set("help", "Show how to use a command");
  return [...words].map(([word, text]) => ({ word, summary: text }));
}

/** Group → its subcommands. */
export function groupsOf(commands: readonly CompletedCommand[]): ReadonlyMap<string, readonly NextWord[]> {
  const groups = new Map<string, NextWord[]>();
  for (const { name, summary } of commands) {
    const [group = "", word] = name.split(" ");
    if (word === undefined) continue;
    groups.set(group, [...(groups.get(group) ?? []), { word, summary }]);
  }
  return groups;
}

/** The switches of all commands: the word after any other flag is its value. */
export function switchesOf(commands: readonly CompletedCommand[]): string[] {
  const flags = commands.flatMap(({ flags }) =>
    flags.flatMap(({ flag, value }) => (value === undefined ? flag : [])),
  );
  return [...new Set([...flags, VERSION.flag, "-h", "-v"])];
}

/** Flags whose values are the same, together: a shell tests them in one pattern. */
export function flagsByCandidates(
  flags: readonly CompletedFlag[],
): { readonly flags: readonly string[]; readonly value: Candidates }[] {
  const groups = new Map<string, { flags: string[]; value: Candidates }>();
  for (const { flag, value } of flags) {
    if (value === undefined) continue;
    // What a value is called is shown by one shell only, and not worth a pattern of its own.
    const key = JSON.stringify(value.kind === "text" ? value.kind : value);
    const group = groups.get(key);
    if (group) group.flags.push(flag);
    else groups.set(key, { flags: [flag], value });
  }
  return [...groups.values()];
}
