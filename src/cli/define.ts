import { type Given, misread, type Options, readOptions, sourceOf, variableOf } from "../config/option.ts";
import { Problem, quoted } from "../config/problem.ts";
import type { Command, Definition, Input, Positionals } from "./command.ts";
import { nearest } from "./nearest.ts";

/** A definition with its reading in front: `run` sees only what was checked. */
export function define<P extends Positionals, O extends Options, const R extends keyof O & string = never>(
  definition: Definition<P, O, R>,
): Command {
  const { name, positionals, options, required, run } = definition;
  return {
    ...definition,
    async execute(words, given, context) {
      const source = (flag: string) => sourceOf(flag, given, context.variables);
      const missing = required.find((flag) => source(flag) === undefined);
      const places = readPositionals(name, positionals, words);
      const values = readOptions(options, given, context.variables);
      const problem = strayFlag(name, options, given);
      if (problem) return problem;
      if (places instanceof Problem) return places;
      if (values instanceof Problem) return values;
      if (missing) return new Problem(needs(name, missing, options));
      // Every positional and every required option was found above, which is what these types say.
      const input = { positionals: places, values, source } as Input<P, O, R>;
      return run(input, context);
    },
  };
}

function strayFlag(name: string, options: Options, given: Given): Problem | undefined {
  const stray = Object.keys(given).find((flag) => !Object.hasOwn(options, flag));
  if (stray === undefined) return undefined;
  const near = nearest(stray, Object.keys(options));
  return new Problem(
    `${name} takes no --${stray}; ${near ? `did you mean --${near}?` : `see petstore ${name} --help`}`,
  );
}

function readPositionals(
  name: string,
  positionals: Positionals,
  words: readonly string[],
): Record<string, unknown> | Problem {
  const values: Record<string, unknown> = {};
  for (const [index, [label, kind]] of Object.entries(positionals).entries()) {
    const word = words[index];
    if (word === undefined) return new Problem(`${name} needs ${label}: ${kind.expected}`);
    values[label] = kind.read(word);
    if (values[label] === undefined) return misread(label, word, kind);
  }
  const extra = words[Object.keys(positionals).length];
  if (extra === undefined) return values;
  return new Problem(`${name} does not know what to do with ${quoted(extra)}; see petstore ${name} --help`);
}

function needs(name: string, flag: string, options: Options): string {
  return `${name} needs --${flag} (or ${variableOf(flag)}): ${options[flag]?.kind.expected}`;
}
