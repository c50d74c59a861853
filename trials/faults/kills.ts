/* Runs `npx bun trials/faults/kills.ts`; its --help describes the options. */

import { SQL } from "bun";
import { rmSync } from "node:fs";
import { errorMessage } from "../../src/cli/error-message.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { integer, names, runCommand } from "../harness/command-line.ts";
import { PETSTORE, runPetstore } from "../harness/petstore.ts";
import { Random } from "../harness/random.ts";
import { countsOf, countTexts } from "../harness/statistics.ts";
import { tableOf } from "../harness/table.ts";
import { type Result, resultText, runTrials } from "../harness/trials.ts";
import { type Attempt, COMMANDS, createFixture, type Prepare } from "./killed-commands.ts";

const MAX_SEED = 2 ** 31;
const NAMES = Object.keys(COMMANDS);

const HELP = `Usage: npx bun trials/faults/kills.ts [OPTIONS]

Kills petstore backup and restore (of SQLite and PostgreSQL), import and export at random moments, and runs each again.
Nothing may be lost or doubled, nobody may see anything half done, and the last run must finish. Exits with 1 otherwise.

  --kills N     Kills of each command (default: 50)
  --seed N      For the moments of the kills (default: by chance, printed)
  --pets N      Pets in the store (default: 10000); an import has 20 times as many rows
  --only LIST   Some of these, with commas between (default: all):
                ${NAMES.join(", ")}
  --help        Show this
`;

/** Kills the command at random moments of its run, at least `kills` times, and runs it again after each kill. */
async function killRepeatedly(prepare: Prepare, kills: number, random: Random) {
  const found: string[] = [];
  /** How long the command takes without a kill. */
  const durationMs = await withAttempt(prepare, durationOf);
  /** The numbers of kills. A kill is late, and does not count, if the command had already ended. */
  const figures = { kills: 0, late: 0, durationMs };
  while (figures.kills < kills) {
    await withAttempt(prepare, async (attempt) => {
      // Half of the commands are killed again during their second run.
      let isKilled = await killDuring(attempt.argv, random.between(0, durationMs));
      if (!isKilled) figures.late++;
      while (isKilled) {
        found.push(...((await attempt.checkAfterKill?.()) ?? []));
        figures.kills++;
        isKilled = random.chance(2) && (await killDuring(attempt.argv, random.between(0, durationMs)));
        if (!isKilled) found.push(...(await finish(attempt)));
      }
    });
  }
  return { problems: countTexts(countsOf(found)), figures };
}

/** Runs `work` on an attempt, and removes its data afterwards. */
async function withAttempt<T>(prepare: Prepare, work: (attempt: Attempt) => Promise<T>): Promise<T> {
  const directory = temporaryDirectory("killed");
  const attempt = await prepare(directory);
  const result = await work(attempt);
  rmSync(directory, { recursive: true });
  if (attempt.database === undefined) return result;
  const { pathname, href } = new URL(attempt.database);
  await using sql = new SQL(new URL("/postgres", href).href, { max: 1 });
  await sql.unsafe(`DROP DATABASE ${pathname.slice(1)} WITH (FORCE)`);
  return result;
}

async function durationOf(attempt: Attempt): Promise<number> {
  const startedAt = performance.now();
  const problems = await finish(attempt);
  if (problems.length > 0) throw new Error(`it fails without a kill: ${problems.join("; ")}`);
  return performance.now() - startedAt;
}

async function finish({ argv, exitCode = 0, checkAtEnd }: Attempt): Promise<string[]> {
  const { code, err } = await runPetstore(...argv);
  const problems = await checkAtEnd().catch((error: unknown) => {
    throw new Error(`${errorMessage(error)}; the command exited with ${code}: ${err.trim()}`);
  });
  return [...(code === exitCode ? [] : [`run again, it fails: ${err.trim()}`]), ...problems];
}

/** Kills a command. Returns whether it was running. */
async function killDuring(argv: readonly string[], afterMs: number): Promise<boolean> {
  const child = Bun.spawn([...PETSTORE, ...argv], { stdout: "ignore", stderr: "ignore" });
  await Promise.race([Bun.sleep(afterMs), child.exited]);
  child.kill("SIGKILL");
  await child.exited;
  return child.signalCode === "SIGKILL";
}

type KillFigures = Awaited<ReturnType<typeof killRepeatedly>>["figures"];

const figure = (name: keyof KillFigures) => (result: Result<KillFigures>) =>
  `${Math.round(result.figures?.[name] ?? 0)}`;

await runCommand({
  name: "faults/kills",
  help: HELP,
  flags: {
    kills: integer(50, 1_000),
    pets: integer(10_000, 1_000_000),
    only: names(NAMES),
    seed: integer(1 + Math.floor(Math.random() * MAX_SEED), MAX_SEED),
  },
  maxMinutes: 30,
  async main({ kills, pets, only, seed }) {
    process.stderr.write(`seed ${seed}\n`);
    const random = new Random(seed);
    const fixture = await createFixture(pets);
    const title = `Commands that were killed at random moments, with ${pets.toLocaleString("en")} pets`;
    return runTrials({
      trials: Object.entries(COMMANDS).map(([name, command]) => ({ name, title: name, command })),
      only,
      run: async ({ command }) => killRepeatedly(await command(fixture), kills, random),
      tablesOf: (results) => [
        tableOf(title, results, {
          command: ({ title }) => title,
          kills: figure("kills"),
          "too late": figure("late"),
          "duration ms": figure("durationMs"),
          result: resultText,
        }),
      ],
    });
  },
});
