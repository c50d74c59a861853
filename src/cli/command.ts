import {
  type Flags,
  invalidValue,
  type Option,
  type Options,
  parseOptions,
  type Source,
  sourceOf,
  type ValuesOf,
  variableOf,
  type Variables,
} from "../config/parse-options.ts";
import { nearest, quoted, UsageError } from "../config/usage-error.ts";
import type { ValueType } from "../config/value-types.ts";
import type { Attribution } from "../domain/audit.ts";
import type { Clock } from "../domain/ports.ts";
import type { Log, LogOptions } from "../observe/log.ts";
import type { Screen } from "./output.ts";
import type { StopSignal } from "./terminal.ts";

/** What `main` gives the program: all but what the command line says. */
export interface ProcessContext extends Omit<Context, "screen" | "envFileVariables"> {
  /** The width of the terminal that is standard output; undefined if it is none. */
  columns(): number | undefined;
}

/** What a command uses of its process. */
export interface Context {
  readonly variables: Variables;
  /** The names of the variables that --env-file sets. */
  readonly envFileVariables: ReadonlySet<string>;
  /** Where the command works because the user has logged in there. */
  readonly loginServer?: string;
  readonly clock: Clock;
  /** Writes to standard output. Resolves when it has left the process. */
  print(text: string | Uint8Array): Promise<void>;
  /** Writes a line to standard error. */
  warn(line: string): void;
  /** Standard error, for what is written over again. */
  readonly errorStream: ErrorStream;
  /** Standard input, as it arrives. */
  readInput(): AsyncIterable<Uint8Array>;
  /** Standard output as the user wants it. */
  readonly screen: Screen;
  /** A log on standard error. An error that nothing catches is logged in the same format. */
  openLog(options: LogOptions): Log;
  /** The user of the operating system; undefined on a system without users. */
  readonly user: string | undefined;
  /** Asks for a secret without showing it, or reads it from standard input if that is not a terminal. */
  readSecret(prompt: string): Promise<string>;
  /** Asks a question that is answered with y. True without a terminal, where nobody could answer. */
  confirm(question: string): Promise<boolean>;
  /** Resolves with the first signal that stops the process. */
  stopSignal(drainDelayMs: number): Promise<StopSignal>;
}

/** The user who runs the command, and the time. */
export function attributionOf({ clock, user }: Pick<Context, "clock" | "user">): Attribution {
  return { actor: { kind: "command line", ...(user !== undefined && { name: user }) }, at: clock.now() };
}

/** Whether a signal asks the command to stop, which it does after the work in progress. */
export function stopRequest({ stopSignal }: Pick<Context, "stopSignal">): () => boolean {
  let isStopped = false;
  void stopSignal(0).then(
    () => (isStopped = true),
    () => {},
  );
  return () => isStopped;
}

export interface ErrorStream {
  readonly isTerminal: boolean;
  /** The width of the terminal. */
  readonly columns: number;
  write(text: string): void;
}

/** The command line was right and the command failed: no such key, the port is in use. Exit status 1. */
export class Failure {
  constructor(readonly message: string) {}
}

/** Why a command failed, or what it prints at its end; undefined if it has printed everything. */
export type Outcome = UsageError | Failure | string | undefined;

/** By the label in usage lines. Those that are optional come last. */
type Positionals = Readonly<Record<string, ValueType<unknown>>>;

/** The parsed command line and variables. */
export interface Input<P extends Positionals, O extends Options> {
  readonly positionals: { readonly [N in keyof P]: P[N] extends ValueType<infer T> ? T : never };
  readonly values: ValuesOf<O>;
  /** The flag or variable that sets an option; undefined for a default. */
  source(flag: keyof O & string): Source | undefined;
  /** The values, with `saved` in place of defaults. */
  valuesWith(saved: SavedSettings): this["values"];
}

/** Values of options as text, by flag: what a server saves when it starts. */
export type SavedSettings = Readonly<Record<string, string>>;

interface Definition<P extends Positionals, O extends Options> {
  /** Such as `keys create`. */
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly positionals?: P;
  readonly options: O;
  /** Those of `options` that the server saves with its data; given here, they override what it saved. */
  readonly savedOptions?: Options;
  readonly examples: readonly string[];
  run(input: Input<P, O>, context: Context): Promise<Outcome>;
}

/** A command with its types erased: its definition for --help, and `execute`. */
export interface Command extends Required<Omit<Definition<Positionals, Options>, "run">> {
  execute(positionals: readonly string[], flags: Flags, context: Context): Promise<Outcome>;
}

export function defineCommand<P extends Positionals, O extends Options>(
  definition: Definition<P, O>,
): Command {
  const { name, options, run, savedOptions = {} } = definition;
  const positionalTypes: Positionals = definition.positionals ?? {};
  return {
    ...definition,
    positionals: positionalTypes,
    savedOptions,
    async execute(texts, flags, context) {
      const source = (flag: string) => sourceOf(flag, flags, context.variables);
      const unsupported = unsupportedFlag(name, options, flags);
      if (unsupported) return unsupported;
      const positionals = parsePositionals(name, positionalTypes, texts);
      if (positionals instanceof UsageError) return positionals;
      const values = parseOptions(options, flags, context.variables);
      if (values instanceof UsageError) return values;
      for (const [flag, { isRequired, type }] of Object.entries<Option>(options)) {
        if (isRequired && source(flag) === undefined)
          return new UsageError(`${name} needs --${flag}: ${type.expected}`);
      }
      const valuesWith = (saved: SavedSettings) => {
        // A file that an option names may be a pipe, so the others are not read again.
        const isSaved = ([flag]: [string, Option]) => Object.hasOwn(saved, flag);
        const optionsToMerge = Object.fromEntries(Object.entries<Option>(options).filter(isSaved));
        const merged = parseOptions(optionsToMerge, flags, { ...asVariables(saved), ...context.variables });
        // A server of another version can have saved what this one does not accept.
        return merged instanceof UsageError ? values : { ...values, ...merged };
      };
      // Every positional has a value, which is what the type says.
      return run({ positionals, values, source, valuesWith } as Input<P, O>, context);
    },
  };
}

function asVariables(saved: SavedSettings): Variables {
  return Object.fromEntries(Object.entries(saved).map(([flag, text]) => [variableOf(flag), text]));
}

function unsupportedFlag(name: string, options: Options, flags: Flags): UsageError | undefined {
  const unsupported = Object.keys(flags).find((flag) => !Object.hasOwn(options, flag));
  if (unsupported === undefined) return undefined;
  if (unsupported === "server")
    return new UsageError(`${name} works on this machine only; run it on the machine of the server`);
  const near = nearest(unsupported, Object.keys(options));
  return new UsageError(
    `${name} has no flag --${unsupported}; ${near ? `did you mean --${near}?` : `see petstore ${name} --help`}`,
  );
}

function parsePositionals(
  name: string,
  positionals: Positionals,
  texts: readonly string[],
): Record<string, unknown> | UsageError {
  const values: Record<string, unknown> = {};
  for (const [index, [label, type]] of Object.entries(positionals).entries()) {
    const text = texts[index];
    if (text === undefined) {
      if (type.optional) continue;
      return new UsageError(`${name} needs ${label}: ${type.expected}`);
    }
    values[label] = type.parse(text);
    if (values[label] === undefined) return invalidValue(label, text, type);
  }
  const extra = texts[Object.keys(positionals).length];
  if (extra === undefined) return values;
  return new UsageError(`unexpected argument ${quoted(extra)}; see petstore ${name} --help`);
}
