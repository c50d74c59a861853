/** `npx bun trials/faults/kills.ts`: see --help. */
import { integer, names, type Outcome, resultText, runCommand, runEach } from "../harness/command-line.ts";
import { PETSTORE, runPetstore } from "../harness/petstore.ts";
import { countsOf } from "../harness/statistics.ts";
import { plainTable } from "../harness/table.ts";
import { type Attempt, COMMANDS, createFixture, type Prepare } from "./killed-commands.ts";

type Name = keyof typeof COMMANDS;
const NAMES = Object.keys(COMMANDS) as Name[];

const HELP = `Usage: npx bun trials/faults/kills.ts [OPTIONS]

Kills petstore backup, restore, copy (to PostgreSQL and from it), import and export at random moments, and runs each again.
Nothing may be lost or doubled, nobody may see anything half done, and the last run must finish. Exits with 1 otherwise.

  --kills N     Kills of each command (default: 50)
  --pets N      Pets in the store (default: 10000); an import has 20 times as many rows
  --only LIST   Some of these, with commas between (default: all):
                ${NAMES.join(", ")}
  --help        Show this
`;

interface KillFigures {
  readonly kills: number;
  /** Kills that came too late: the command had ended. They do not count. */
  readonly late: number;
  /** How long the command takes if nobody kills it. */
  readonly durationMs: number;
}

/** Kills the command at random moments of its run, at least `kills` times, and runs it again after each. */
async function killRepeatedly(title: Name, prepare: Prepare, kills: number): Promise<Outcome<KillFigures>> {
  const found: string[] = [];
  const durationMs = await durationOf(await prepare());
  let [count, late] = [0, 0];
  while (count < kills) {
    const attempt = await prepare();
    // Half of the commands are killed again when they are run again.
    let isKilled = await killDuring(attempt.argv, Math.random() * durationMs);
    if (!isKilled) late++;
    while (isKilled) {
      found.push(...(await attempt.checkAfterKill()));
      count++;
      isKilled = Math.random() < 0.5 && (await killDuring(attempt.argv, Math.random() * durationMs));
      if (!isKilled) found.push(...(await finish(attempt)));
    }
    await attempt.remove();
  }
  const problems = Object.entries(countsOf(found)).map(([problem, times]) => `${times} × ${problem}`);
  return { title, problems, figures: { kills: count, late, durationMs } };
}

async function durationOf(attempt: Attempt): Promise<number> {
  const startedAt = performance.now();
  const problems = await finish(attempt);
  const durationMs = performance.now() - startedAt;
  await attempt.remove();
  if (problems.length > 0) throw new Error(`it fails without a kill: ${problems.join("; ")}`);
  return durationMs;
}

async function finish({ argv, exitCode = 0, checkAtEnd }: Attempt): Promise<string[]> {
  const { code, err } = await runPetstore(...argv);
  return [...(code === exitCode ? [] : [`run again, it fails: ${err.trim()}`]), ...(await checkAtEnd())];
}

/** Whether the command was running when it was killed. */
async function killDuring(argv: readonly string[], afterMs: number): Promise<boolean> {
  const child = Bun.spawn([...PETSTORE, ...argv], { stdout: "ignore", stderr: "ignore" });
  await Promise.race([Bun.sleep(afterMs), child.exited]);
  child.kill("SIGKILL");
  await child.exited;
  return child.signalCode === "SIGKILL";
}

await runCommand({
  name: "faults/kills",
  help: HELP,
  flags: { kills: integer(50, 1_000), pets: integer(10_000, 1_000_000), only: names(NAMES) },
  maxMinutes: 30,
  async main({ kills, pets, only = NAMES }) {
    const fixture = await createFixture(pets);
    const commands = only.map((title) => ({ title }));
    const results = await runEach(commands, async ({ title }) =>
      killRepeatedly(title, await COMMANDS[title](fixture), kills),
    );
    process.stdout.write(
      plainTable({
        title: `Commands that were killed at random moments, with ${pets.toLocaleString("en")} pets`,
        header: ["command", "kills", "too late", "duration ms", "result"],
        rows: results.map((result) => {
          const { kills, late, durationMs } = result.figures ?? { kills: 0, late: 0, durationMs: 0 };
          return [result.title, `${kills}`, `${late}`, `${Math.round(durationMs)}`, resultText(result)];
        }),
      }),
    );
    return results.some(({ problems }) => problems.length > 0) ? 1 : 0;
  },
});
