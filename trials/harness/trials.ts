import { UsageError } from "./command-line.ts";
import { publishTables, type Section, type Table } from "./table.ts";

/** A scenario, an attack or a check. */
interface Trial {
  /** By which --only chooses it. */
  readonly name?: string;
  readonly title: string;
}

/** What became of a trial. Without problems, it has passed. */
export interface Outcome<Figures> {
  readonly problems: readonly string[];
  readonly figures?: Figures;
  /** What is worth knowing about a success, or why this machine cannot run it. */
  readonly note?: string;
}

export interface Result<Figures> extends Outcome<Figures> {
  readonly title: string;
}

interface TrialsOptions<Each extends Trial, Figures> {
  readonly trials: readonly Each[];
  /** By their names; otherwise all. */
  readonly only?: readonly string[] | undefined;
  run(trial: Each): Promise<Outcome<Figures>>;
  tablesOf?(results: readonly Result<Figures>[]): readonly Table[];
  /** Where the tables are written with --docs. */
  readonly docs?: Section | false;
}

/** Runs one after the other. What is thrown in one of them is its problem. Gives the exit code. */
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

/** A line of --help for each. */
export function trialLines(trials: readonly Required<Trial>[]): string {
  const width = Math.max(...trials.map(({ name }) => name.length));
  return trials.map(({ name, title }) => `                  ${name.padEnd(width)}  ${title}`).join("\n");
}
