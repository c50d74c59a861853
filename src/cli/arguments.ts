import { systemErrorField } from "../runtime/system-error.ts";
import { printable } from "../text/formatting.ts";
import { type Flags, type Option, type Options, variableOf } from "../config/parse-options.ts";
import { nearest, quoted, UsageError, withoutSecrets } from "../config/usage-error.ts";
import { choice, trueOrFalse } from "../config/value-types.ts";
import { COLOR_CHOICES } from "./output.ts";

/** A command line, parsed before the command is known: flags may come before, between and after the positionals. */
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

function unknownFlag(typed: string, candidates: Options): UsageError {
  const flags = Object.keys(candidates).filter((flag) => !candidates[flag]?.isVariableOnly);
  const name = typed.replace(/^-+/, "");
  // --PORT and --per_minute differ from a flag in their spelling only.
  const meant = flags.find((flag) => variableOf(flag) === variableOf(name)) ?? nearest(name, flags);
  return new UsageError(
    meant
      ? `unknown flag ${quoted(typed)}; did you mean --${meant}?`
      : `unknown flag ${quoted(typed)}; see --help`,
  );
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "no space is left on the device",
  EDQUOT: "the disk quota is used up",
  EFBIG: "the file would be larger than the limit for files",
  ENOTDIR: "a part of the path is a file, not a directory",
  EEXIST: "a part of the path is a file, not a directory",
  ENOENT: "a part of the path does not exist",
  ELOOP: "it is a symbolic link, which is not followed",
};

const BUGS: ReadonlySet<string> = new Set(["TypeError", "RangeError", "ReferenceError", "SyntaxError"]);

export function isBug(error: unknown): boolean {
  return error instanceof Error && BUGS.has(error.name);
}

/** A chain of causes can be a cycle. */
const MAX_CAUSES = 5;

/** Anything thrown, as one line without a stack and without secrets. */
export function errorMessage(error: unknown, maxCauses = MAX_CAUSES): string {
  if (!(error instanceof Error)) return onOneLine(String(error));
  const reason = REASONS[systemErrorField(error, "code") ?? ""];
  const path = systemErrorField(error, "path");
  if (reason !== undefined) return onOneLine(path === undefined ? reason : `${path}: ${reason}`);
  const line = onOneLine(error.message.split("\n")[0] ?? "");
  if (isBug(error)) return `this is a bug in petstore: ${line}`;
  const cause = error.cause === undefined || maxCauses === 0 ? "" : errorMessage(error.cause, maxCauses - 1);
  return line.includes(cause) ? line : `${line}: ${cause}`;
}

function onOneLine(text: string): string {
  return printable(withoutSecrets(text));
}
