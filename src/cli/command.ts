import type { Kind } from "../config/kinds.ts";
import type { Given, Options, Source, ValueOf, ValuesOf, Variables } from "../config/option.ts";
import type { Problem } from "../config/problem.ts";
import type { Clock } from "../domain/ports.ts";
import type { StopSignal } from "./signals.ts";

/** What a command needs from the process around it. */
export interface Context {
  readonly variables: Variables;
  readonly clock: Clock;
  /** To standard output; resolves when the text has left, so that a shown key was really shown. */
  print(text: string): Promise<void>;
  /** A line on standard error about something that does not keep the command from being done. */
  warn(line: string): void;
  /** Resolves with the first signal that asks the process to stop. */
  stopAsked(): Promise<StopSignal>;
}

/** Something outside is in the way: no such key, a port that is taken. One line, and exit status 1. */
export class Failure {
  constructor(readonly message: string) {}
}

/** Nothing when the thing was done. */
export type Outcome = Problem | Failure | undefined;

/** What stands behind a command's name, by the label that usage lines show. */
export type Positionals = Readonly<Record<string, Kind<unknown>>>;

/** What a command is given: read and checked. `Required` names the options that cannot be missing. */
export interface Input<P extends Positionals, O extends Options, Required extends keyof O> {
  readonly positionals: { readonly [N in keyof P]: P[N] extends Kind<infer T> ? T : never };
  readonly values: ValuesOf<O> & { readonly [F in Required]: Exclude<ValueOf<O[F]>, undefined> };
  /** Where an option's value comes from, for messages; undefined when it is the default. */
  source(flag: keyof O & string): Source | undefined;
}

export interface Definition<P extends Positionals, O extends Options, Required extends keyof O & string> {
  /** Such as `keys create`. */
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  /** In order, none of which can be left out. */
  readonly positionals: P;
  readonly options: O;
  readonly required: readonly Required[];
  /** Those of the options that only repeat how the server was started, so that what is shown fits it. */
  readonly asServed: Options;
  readonly examples: readonly string[];
  run(input: Input<P, O, Required>, context: Context): Promise<Outcome>;
}

/** A command as the program sees it: its table for `--help`, and one way in. */
export interface Command extends Omit<Definition<Positionals, Options, string>, "run"> {
  execute(words: readonly string[], given: Given, context: Context): Promise<Outcome>;
}
