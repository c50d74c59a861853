import { type Flags, type Option, type Options, variableOf } from "../config/parse-options.ts";
import { REMOVED_SETTINGS } from "../config/removed-settings.ts";
import { UsageError } from "../config/usage-error.ts";
import { didYouMean, nearest } from "../text/nearest.ts";
import { quoted } from "../config/quoted.ts";
import { choice, trueOrFalse } from "../config/value-types.ts";
import { COLOR_CHOICES } from "./output.ts";

/**
 * A command line, parsed before the command is known: flags may come before, between and after the positionals. A flag
 * that no command has is an error here, because nothing says whether a value follows it. A flag of another command is
 * rejected when the command is known (`rejectUnsupportedFlag`).
 */
export interface Arguments {
  readonly positionals: readonly string[];
  readonly flags: Flags;
  readonly help: boolean;
  readonly version: boolean;
  readonly color: (typeof COLOR_CHOICES)[number];
  /** The first error, if there is one. `known` are the options of the command, which its messages name. */
  error?(known: Options): UsageError;
}

const SWITCH: Option = { type: trueOrFalse, help: "" };
const color = choice("WHEN", COLOR_CHOICES);

/** `--flag value`, `--flag=value`, switches, `-h`, `-v`. Everything after `--` is a positional. */
export function parseArguments(argv: readonly string[], options: Options): Arguments {
  const table: Options = { ...options, help: SWITCH, version: SWITCH, color: { type: color, help: "" } };
  const positionals: string[] = [];
  const flags: Record<string, string[]> = {};
  let error: Arguments["error"];
  const words = [...argv];
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === "--") positionals.push(...words.splice(0));
    else if (word === "-" || !word.startsWith("-")) positionals.push(word);
    else {
      const [, typed = "", inline] = /^([^=]*)(?:=(.*))?$/s.exec(word) ?? [];
      const flag = { "-h": "help", "-v": "version" }[typed] ?? typed.replace(/^--/, "");
      const option = Object.hasOwn(table, flag) ? table[flag] : undefined;
      const isSwitch = option?.type.placeholder === undefined;
      // A value that begins with two dashes needs `=`: most often the value was forgotten and the next flag follows.
      const isMissing = !isSwitch && inline === undefined && (words[0] ?? "--").startsWith("--");
      if (option === undefined) error ??= (known) => unknownFlag(typed, known);
      else if (isMissing)
        error ??= (known) =>
          new UsageError(`${typed} needs a value: ${(known[flag] ?? option).type.expected}`);
      else if (isSwitch && inline !== undefined)
        error ??= () => new UsageError(`${typed} is a switch and takes no value, but got ${quoted(inline)}`);
      else {
        (flags[flag] ??= []).push(inline ?? (isSwitch ? "true" : (words.shift() ?? "")));
        if (option.isVariableOnly) error ??= () => notAFlag(flag, option);
      }
    }
  }
  const { help, version, color: [when = "auto"] = [], ...others } = flags;
  const parsedColor = color.parse(when);
  if (parsedColor === undefined)
    error ??= () => new UsageError(`--color is ${quoted(when)}; it must be ${color.expected}`);
  return {
    positionals,
    flags: others,
    help: help !== undefined,
    version: version !== undefined,
    color: parsedColor ?? "auto",
    ...(error && { error }),
  };
}

function notAFlag(flag: string, { fileOption }: Option): UsageError {
  const file = fileOption === undefined ? "" : ` or --${fileOption}`;
  return new UsageError(
    `--${flag} is no flag, which others could read in a list of processes; use ${variableOf(flag)}${file}`,
  );
}

function unknownFlag(typed: string, known: Options): UsageError {
  const flag = typed.replace(/^-+/, "");
  const removed = REMOVED_SETTINGS.get(flag);
  if (removed !== undefined) return new UsageError(`${typed} ${removed}`);
  const suggestion = suggestedFlag(flag, known) ?? "see --help";
  return new UsageError(`unknown flag ${quoted(typed)}; ${suggestion}`);
}

/** The suggestion of a message about a flag that is none of `known`, if there is one. */
export function suggestedFlag(name: string, known: Options): string | undefined {
  const flags = Object.keys(known).filter((flag) => !known[flag]?.isVariableOnly);
  // --PORT and --per_minute differ from a flag in their spelling only.
  const meant = flags.find((flag) => variableOf(flag) === variableOf(name)) ?? nearest(name, flags);
  return didYouMean(meant && `--${meant}`);
}
