import {
  type Flags,
  type Option,
  type Options,
  parseOptions,
  parseValue,
  type Source,
  sourceOf,
  type ValuesOf,
  type Variables,
} from "../config/parse-options.ts";
import { UsageError } from "../config/usage-error.ts";
import { quoted } from "../config/quoted.ts";
import type { ValueType } from "../config/value-types.ts";
import type { Attribution } from "../domain/audit.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { Log, LogOptions } from "../observe/log.ts";
import { suggestedFlag } from "./arguments.ts";
import type { Screen } from "./output.ts";
import type { StopSignal } from "./terminal.ts";

/** What `main` passes to the program: everything that the command line does not say. */
export interface ProcessContext extends Omit<Context, "screen" | "envFileVariables"> {
  /** The width of the terminal that is standard output; undefined if it is none. */
  columns(): number | undefined;
  /** The settings of the service that a package has installed with this executable. */
  readonly serviceFile?: string | undefined;
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
  /** Whether standard output is the same file, such as that of the journal of systemd. */
  readonly isStandardOutput?: boolean;
  readonly isTerminal: boolean;
  /** The width of the terminal. */
  readonly columns: number;
  write(text: string): void;
}

/** The command line was right and the command failed: no such key, the port is in use. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly exitStatus = 1,
  ) {
    super(message);
  }
}

/** What a command prints at its end; undefined if it has printed everything. */
export type FinalText = string | undefined;

/** The arguments without a flag, by their labels in usage lines. Optional ones come last. */
type Positionals = Readonly<Record<string, ValueType<unknown>>>;

/** A parsed command line. An option without a flag has the value of its variable, or the default. */
export interface CommandLine<P extends Positionals, O extends Options> {
  readonly positionals: { readonly [N in keyof P]: P[N] extends ValueType<infer T> ? T : never };
  readonly values: ValuesOf<O>;
  readonly flags: Flags;
  /** The flag or variable that sets an option; undefined for a default. */
  source(flag: keyof O & string): Source | undefined;
}

/**
 * What a command does to the data here, which decides what it may open. `nothing` is about other things. `locates` says
 * where the data is or who serves it, and opens no database. `inspects` reads databases of any release. `reads` and
 * `changes` need tables of this release. `creates` does, too, and makes a database where there is none. So do
 * `migrates`, which brings tables of an earlier release up to date, and `replaces`, which replaces one by another.
 */
export type DataUse =
  "nothing" | "locates" | "inspects" | "reads" | "changes" | "creates" | "replaces" | "migrates";

interface Definition<P extends Positionals, O extends Options> {
  /** The words of the command, such as `keys create`. */
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly data: DataUse;
  readonly positionals?: P;
  readonly options: O;
  readonly examples: readonly string[];
  run(commandLine: CommandLine<P, O>, context: Context): Promise<FinalText>;
}

/** A command with its types erased: its definition for --help, and `execute`. */
export interface Command extends Required<Omit<Definition<Positionals, Options>, "run">> {
  execute(positionals: readonly string[], flags: Flags, context: Context): Promise<FinalText>;
}

export function defineCommand<P extends Positionals, O extends Options>(
  definition: Definition<P, O>,
): Command {
  const { name, options, run } = definition;
  const positionalTypes: Positionals = definition.positionals ?? {};
  return {
    ...definition,
    positionals: positionalTypes,
    async execute(texts, flags, context) {
      const source = (flag: string) => sourceOf(flag, flags, context.variables);
      rejectUnsupportedFlag(name, options, flags);
      const positionals = parsePositionals(name, positionalTypes, texts);
      const values = parseOptions(options, flags, context.variables);
      for (const [flag, { isRequired, type }] of Object.entries<Option>(options)) {
        if (isRequired && source(flag) === undefined)
          throw new UsageError(`${name} needs --${flag}: ${type.expected}`);
      }
      // Every positional has a value, which is what the type says.
      return run({ positionals, values, flags, source } as CommandLine<P, O>, context);
    },
  };
}

/** Rejects a flag of another command; `parseArguments` rejects those that no command has. */
function rejectUnsupportedFlag(name: string, options: Options, flags: Flags): void {
  const unsupported = Object.keys(flags).find((flag) => !Object.hasOwn(options, flag));
  if (unsupported === undefined) return;
  if (unsupported === "server")
    throw new UsageError(`${name} works on this machine only; run it on the machine of the server`);
  const suggestion = suggestedFlag(unsupported, options) ?? `see petstore ${name} --help`;
  throw new UsageError(`${name} has no flag --${unsupported}; ${suggestion}`);
}

function parsePositionals(name: string, positionals: Positionals, texts: readonly string[]) {
  const values: Record<string, unknown> = {};
  for (const [index, [label, type]] of Object.entries(positionals).entries()) {
    const text = texts[index];
    if (text !== undefined) values[label] = parseValue(label, text, type);
    else if (!type.optional) throw new UsageError(`${name} needs ${label}: ${type.expected}`);
  }
  const extra = texts[Object.keys(positionals).length];
  if (extra === undefined) return values;
  throw new UsageError(`unexpected argument ${quoted(extra)}; see petstore ${name} --help`);
}
