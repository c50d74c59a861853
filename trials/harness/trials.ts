import { UsageError } from "./command-line.ts";
import { publishTables, type Section, type Table } from "./table.ts";

/** A scenario, an attack or a check. */
interface Trial {
  /** The name by which --only selects it. */
  readonly name?: string;
  readonly title: string;
}

/** The outcome of a trial, which has passed if it has no problems. */
export interface Outcome<Figures> {
  readonly problems: readonly string[];
  readonly figures?: Figures;
  /** A remark on a success, or why this machine cannot run the trial. */
  readonly note?: string;
}

export interface Result<Figures> extends Outcome<Figures> {
  readonly title: string;
}

interface TrialsOptions<Each extends Trial, Figures> {
  readonly trials: readonly Each[];
  /** The names of the trials to run; by default all. */
  readonly only?: readonly string[] | undefined;
  run(trial: Each): Promise<Outcome<Figures>>;
  tablesOf?(results: readonly Result<Figures>[]): readonly Table[];
  /** The section for the tables with --docs. */
  readonly docs?: Section | false;
}

/** Runs trials one after the other, and returns the exit code. An error that is thrown in a trial is its problem. */
export async function runTrials<Each extends Trial, Figures>(
  options: TrialsOptions<Each, Figures>,
): Promise<number> {
  const { only, run, tablesOf = () => [], docs } = options;
  if (only !== undefined && docs)
    throw new UsageError("--docs needs all of them and does not go with --only");
  const trials = options.trials.filter(({ name }) => only?.some((each) => each === name) ?? true);
  const results: Result<Figures>[] = [];
  for (const [i, trial] of trials.entries()) {
    const { title } = trial;
    process.stdout.write(`[${i + 1}/${trials.length}] ${title} … `);
    const outcome = await run(trial).catch((error: unknown): Outcome<Figures> => {
      return { problems: [error instanceof Error ? error.message : String(error)] };
    });
    const result = { title, ...outcome };
    process.stdout.write(`${resultText(result)}\n`);
    results.push(result);
  }
  publishTables(tablesOf(results), docs);
  return results.some(({ problems }) => problems.length > 0) ? 1 : 0;
}

export function resultText({ problems, note = "as promised" }: Outcome<unknown>): string {
  return problems.length > 0 ? `FAILED: ${problems.join("; ")}` : note;
}

/** Lines of --help, one for each trial. */
export function trialLines(trials: readonly Required<Trial>[]): string {
  const width = Math.max(...trials.map(({ name }) => name.length));
  return trials.map(({ name, title }) => `                  ${name.padEnd(width)}  ${title}`).join("\n");
}
