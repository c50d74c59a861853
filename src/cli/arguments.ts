import { type Given, type Options, variableOf } from "../config/option.ts";
import { Problem, quoted } from "../config/problem.ts";
import { nearest } from "./nearest.ts";

/** A command line taken apart, whatever the command: flags may stand before, between and behind the words. */
export interface Arguments {
  readonly words: readonly string[];
  readonly given: Given;
  readonly help: boolean;
  readonly version: boolean;
  /** The first flag that cannot be understood; `suggestions` are those that may have been meant. */
  problem?(suggestions: Options): Problem;
}

/** `--flag value`, `--flag=value`, switches, `-h`, `-v`; behind `--` everything is a word. */
export function parseArguments(argv: readonly string[], options: Options): Arguments {
  const words: string[] = [];
  const given: Record<string, string[]> = {};
  let [help, version] = [false, false];
  let problem: Arguments["problem"];

  for (let index = 0; index < argv.length; index++) {
    const token = argv[index] ?? "";
    if (token === "--") {
      words.push(...argv.slice(index + 1));
      break;
    }
    if (token === "--help" || token === "-h") help = true;
    else if (token === "--version" || token === "-v") version = true;
    else if (!token.startsWith("-") || token === "-") words.push(token);
    else {
      const read = readFlag(token, argv[index + 1], options);
      if (read === undefined) problem ??= (suggestions) => unknownFlag(nameOf(token), suggestions);
      else if (read instanceof Problem) problem ??= () => read;
      else {
        (given[read.flag] ??= []).push(read.value);
        if (read.tookNext) index++;
      }
    }
  }
  return { words, given, help, version, ...(problem && { problem }) };
}

function nameOf(token: string): string {
  return token.replace(/=.*/s, "");
}

/** Undefined when there is no such flag. */
function readFlag(token: string, next: string | undefined, options: Options) {
  const name = nameOf(token);
  const flag = name.slice(2);
  const option = name.startsWith("--") && Object.hasOwn(options, flag) ? options[flag] : undefined;
  if (option === undefined) return undefined;

  const inline = name === token ? undefined : token.slice(name.length + 1);
  if (option.kind.placeholder === undefined) {
    if (inline === undefined) return { flag, value: "true", tookNext: false };
    return new Problem(`${name} is a switch and takes no value, but got ${quoted(inline)}`);
  }
  if (inline !== undefined) return { flag, value: inline, tookNext: false };
  // A value that begins with two dashes is far rarer than a forgotten one; it can still be given with `=`.
  if (next === undefined || next.startsWith("--")) {
    return new Problem(`${name} needs a value: ${option.kind.expected}`);
  }
  return { flag, value: next, tookNext: true };
}

function unknownFlag(name: string, options: Options): Problem {
  const flags = Object.keys(options);
  const near =
    flags.find((flag) => variableOf(flag) === variableOf(name.replace(/^-+/, ""))) ??
    nearest(name.replace(/^-+/, ""), flags);
  return new Problem(
    near
      ? `unknown flag ${quoted(name)}; did you mean --${near}?`
      : `unknown flag ${quoted(name)}; see --help`,
  );
}
