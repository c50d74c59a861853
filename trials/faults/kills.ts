/** `npx bun trials/faults/kills.ts`: see --help. */
import { integerIn, limitRunTime, namesIn, parseFlags, runCommand } from "../harness/command-line.ts";
import { PETSTORE } from "../harness/petstore.ts";
import { plainTable } from "../harness/table.ts";
import {
  type Attempt,
  backupCommand,
  copyFromCommand,
  copyToCommand,
  createFixture,
  exportCommand,
  importCommand,
  type KilledCommand,
  restoreCommand,
} from "./killed-commands.ts";

const NAMES = [
  ...(["backup", "restore", "copy-to", "copy-from"] as const),
  ...(["import", "export", "import-postgres", "export-postgres"] as const),
];

const HELP = `Usage: npx bun trials/faults/kills.ts [OPTIONS]

Kills petstore backup, restore, copy (to PostgreSQL and from it), import and export at random moments, and runs each again.
Nothing may be lost or doubled, nobody may see anything half done, and the last run must finish. Exits with 1 otherwise.

  --kills N     Kills of each command (default: 50)
  --pets N      Pets in the store (default: 10000); an import has 20 times as many rows
  --only LIST   Some of these, with commas between (default: all):
                ${NAMES.join(", ")}
  --help        Show this
`;

const FLAGS = {
  kills: { type: "string", default: "50" },
  pets: { type: "string", default: "10000" },
  only: { type: "string", default: NAMES.join(",") },
  help: { type: "boolean", default: false },
} as const;
const RUN_TIMEOUT_MS = 30 * 60_000;

interface KillResult {
  readonly name: string;
  readonly kills: number;
  /** Kills that came too late: the command had ended. They do not count. */
  readonly late: number;
  /** How long the command takes if nobody kills it. */
  readonly durationMs: number;
  /** The same problem is in the list once, with the number of kills after which it occurred. */
  readonly problems: ReadonlyMap<string, number>;
}

/** Kills the command at random moments of its run, at least `kills` times, and runs it again after each. */
async function killRepeatedly({ name, prepare }: KilledCommand, kills: number): Promise<KillResult> {
  const problems = new Map<string, number>();
  const report = (found: readonly string[]) => {
    for (const problem of found) problems.set(problem, (problems.get(problem) ?? 0) + 1);
  };
  const durationMs = await durationOf(await prepare());
  let [count, late] = [0, 0];
  while (count < kills) {
    const attempt = await prepare();
    // Half of the commands are killed again when they are run again.
    let isKilled = await killDuring(attempt.argv, Math.random() * durationMs);
    if (!isKilled) late++;
    while (isKilled) {
      report(await attempt.checkAfterKill());
      count++;
      isKilled = Math.random() < 0.5 && (await killDuring(attempt.argv, Math.random() * durationMs));
      if (!isKilled) report(await finish(attempt));
    }
    await attempt.remove();
  }
  return { name, kills: count, late, durationMs, problems };
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
  const child = Bun.spawn([...PETSTORE, ...argv], { stdout: "ignore", stderr: "pipe" });
  const [error, code] = await Promise.all([child.stderr.text(), child.exited]);
  return [...(code === exitCode ? [] : [`run again, it fails: ${error.trim()}`]), ...(await checkAtEnd())];
}

/** Whether the command was running when it was killed. */
async function killDuring(argv: readonly string[], afterMs: number): Promise<boolean> {
  const child = Bun.spawn([...PETSTORE, ...argv], { stdout: "ignore", stderr: "ignore" });
  await Promise.race([Bun.sleep(afterMs), child.exited]);
  child.kill("SIGKILL");
  await child.exited;
  return child.signalCode === "SIGKILL";
}

function reportOf(results: readonly KillResult[], pets: number): string {
  return plainTable({
    title: `Commands that were killed at random moments, with ${pets.toLocaleString("en")} pets`,
    header: ["command", "kills", "too late", "duration", "result"],
    rows: results.map((result) => [
      result.name,
      String(result.kills),
      String(result.late),
      `${Math.round(result.durationMs)} ms`,
      outcomeOf(result),
    ]),
  });
}

function outcomeOf({ problems }: KillResult): string {
  if (problems.size === 0) return "nothing lost, nothing doubled";
  return [...problems].map(([problem, count]) => `${count} × ${problem}`).join("; ");
}

await runCommand("faults/kills", async (args) => {
  const flags = parseFlags(args, FLAGS);
  if (flags.help) {
    process.stdout.write(HELP);
    return 0;
  }
  limitRunTime(RUN_TIMEOUT_MS);
  const kills = integerIn("--kills", flags.kills, 1_000);
  const pets = integerIn("--pets", flags.pets, 1_000_000);
  const names = namesIn("--only", flags.only, NAMES);
  const fixture = await createFixture(pets);
  const transfer = { rows: 20 * pets, isPostgres: false };
  const onPostgres = { ...transfer, isPostgres: true };
  const commands: Record<(typeof NAMES)[number], () => Promise<KilledCommand>> = {
    backup: async () => backupCommand(fixture),
    restore: async () => restoreCommand(fixture),
    "copy-to": async () => copyToCommand(fixture),
    "copy-from": () => copyFromCommand(fixture),
    import: async () => importCommand({ name: "import", ...transfer }),
    export: () => exportCommand({ name: "export", ...transfer }),
    "import-postgres": async () => importCommand({ name: "import-postgres", ...onPostgres }),
    "export-postgres": () => exportCommand({ name: "export-postgres", ...onPostgres }),
  };
  const results: KillResult[] = [];
  for (const name of names) {
    process.stdout.write(`${name} … `);
    const result = await killRepeatedly(await commands[name](), kills);
    process.stdout.write(`${outcomeOf(result)}\n`);
    results.push(result);
  }
  process.stdout.write(reportOf(results, pets));
  return results.some(({ problems }) => problems.size > 0) ? 1 : 0;
});
