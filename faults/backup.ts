/** `npx bun faults/backup.ts`: see --help. */
import { integerIn, limitRunTime, namesIn, parseFlags, runCommand } from "../harness/command-line.ts";
import { startPostgres } from "../harness/postgres.ts";
import { plainTable } from "../harness/table.ts";
import { startValkey } from "../harness/valkey.ts";
import { backupCommand, restoreCommand } from "./killed-backups.ts";
import { type KillResult, killRepeatedly } from "./killed-commands.ts";
import { copyFromCommand, copyToCommand } from "./killed-copies.ts";
import { createFixture } from "./killed-fixture.ts";

const HELP = `Usage: npx bun faults/backup.ts [OPTIONS]

Kills petstore backup, restore and copy (to PostgreSQL and from it) at random moments, and runs each again. Nothing may be
lost or doubled, nobody may see anything half done, and the second run must finish. Exits with 1 otherwise.

  --kills N     Kills of each command (default: 50)
  --pets N      Pets in the store (default: 10000)
  --only LIST   Some of backup, restore, copy-to, copy-from, with commas between (default: all)
  --help        Show this
`;

const NAMES = ["backup", "restore", "copy-to", "copy-from"] as const;
const FLAGS = {
  kills: { type: "string", default: "50" },
  pets: { type: "string", default: "10000" },
  only: { type: "string", default: NAMES.join(",") },
  help: { type: "boolean", default: false },
} as const;
const RUN_TIMEOUT_MS = 30 * 60_000;

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

await runCommand("faults/backup", async (args) => {
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
  const [postgres, valkey] = await Promise.all([startPostgres(), startValkey()]);
  const engines = { postgres: postgres.url, valkey: valkey.url };
  const commands = {
    backup: async () => backupCommand(fixture),
    restore: async () => restoreCommand(fixture),
    "copy-to": async () => copyToCommand(fixture, engines),
    "copy-from": () => copyFromCommand(fixture, engines),
  };
  const results: KillResult[] = [];
  for (const name of names) {
    process.stdout.write(`${name} … `);
    const result = await killRepeatedly(await commands[name](), kills);
    process.stdout.write(`${outcomeOf(result)}\n`);
    results.push(result);
  }
  process.stdout.write(reportOf(results, pets));
  await Promise.all([postgres.stop(), valkey.stop()]);
  return results.some(({ problems }) => problems.size > 0) ? 1 : 0;
});
