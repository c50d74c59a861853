/* Runs `npm run nightly`; its --help describes the options. */

import { join } from "node:path";
import { Child } from "../trials/harness/child.ts";
import { integer, runCommand } from "../trials/harness/command-line.ts";

const ROOT = join(import.meta.dir, "..");
const DAY_MS = 86_400_000;
const MAX_SEED = 2 ** 31;

const HELP = `Usage: npm run nightly [-- OPTIONS]

Runs what is left to chance, and takes too long for every change: changes of single lines that tests must notice, simulations,
faults together, kills of commands, attacks and bad requests. Every part runs, also if another one has failed. Exits with 1 if
one fails, and prints the command that repeats it. Takes about two hours.

  --seed N      The seed of all parts (default: the number of days since 1970)
  --help        Show this
`;

/** Files that changed since then have lines changed. */
function yesterday(): readonly string[] {
  const git = Bun.spawnSync(["git", "rev-list", "-1", "--before=1 day ago", "HEAD"], { cwd: ROOT });
  const revision = git.stdout.toString().trim();
  return revision === "" ? [] : ["--since", revision];
}

const PARTS: readonly (readonly string[])[] = [
  ["trials/simulation/simulate.ts", "--seeds", "2000"],
  ["trials/faults/faults.ts", "--compose", "--seeds", "20"],
  ["trials/faults/kills.ts", "--kills", "10"],
  ["trials/attacks/fuzz.ts", "--seconds", "300"],
  ["trials/mutants/mutants.ts", "--minutes", "60", ...yesterday()],
];
/** Attacks are the same every time. */
const ATTACKS: readonly string[] = ["trials/attacks/run.ts"];

await runCommand({
  name: "nightly",
  help: HELP,
  flags: { seed: integer(Math.floor(Date.now() / DAY_MS), MAX_SEED) },
  async main({ seed }) {
    const failed: string[] = [];
    for (const part of [...PARTS, ATTACKS]) {
      const command = part === ATTACKS ? ATTACKS : part.concat("--seed", `${seed}`);
      const line = `npx bun ${command.join(" ")}`;
      process.stdout.write(`\n${line}\n`);
      const child = new Child([process.execPath, ...command], {
        cwd: ROOT,
        onLine: (text) => void process.stdout.write(`${text}\n`),
      });
      if ((await child.ended) !== 0) failed.push(line);
    }
    process.stdout.write(`\n${failed.length === 0 ? "All parts passed" : `Failed:\n${failed.join("\n")}`}\n`);
    return failed.length === 0 ? 0 : 1;
  },
});
