/* Runs `npm run simulate`; its --help describes the options. */

import { integer, names, runCommand } from "../harness/command-line.ts";
import { formatCount } from "../harness/table.ts";
import { simulateGroupCommit } from "./group-commit.ts";
import { simulateChanges } from "./changes.ts";
import { simulateCommits } from "./commits.ts";
import { World } from "./world.ts";
import { simulateWriteBehind } from "./write-behind.ts";

/** The simulations. Each plays what its seed determines, and throws when the service breaks a promise. */
const SIMULATIONS = {
  "group-commit": simulateGroupCommit,
  commits: simulateCommits,
  "write-behind": simulateWriteBehind,
  changes: simulateChanges,
} as const;

type SimulationName = keyof typeof SIMULATIONS;
export const SIMULATION_NAMES = Object.keys(SIMULATIONS) as SimulationName[];

/** Runs a simulation. Returns what went wrong, with its history; undefined if nothing did. */
export function runSimulation(name: SimulationName, seed: number): string | undefined {
  const world = new World(seed);
  try {
    SIMULATIONS[name](world);
    return undefined;
  } catch (error) {
    const history = world.history.map(([at, ...what]) => `${at.toFixed(3).padStart(12)} ${what.join(" ")}\n`);
    return `${history.join("")}${error instanceof Error ? error.stack : error}\n${name}, seed ${seed}`;
  }
}

const MAX_SEED = 2 ** 32 - 1;
const DEFAULT_SEEDS = 10_000;
const SEEDS_PER_STEP = 100;

const HELP = `Usage: npm run simulate [-- OPTIONS]

Plays servers, their clients, operators, databases, disk and network in one process, with a clock of its own: processes block
and are killed, databases stand still, replies are late or lost, clocks are set. A seed determines everything. Exits with 1 at
the first broken promise and prints the history that led to it, and the command that repeats it.

  --seeds N      Number of seeds, shared by the simulations (default: ${DEFAULT_SEEDS})
  --seed N       The first seed (default: by chance, printed); alone, it is the only one
  --only NAMES   With commas between them: ${SIMULATION_NAMES.join(", ")}
  --help         Show this
`;

if (import.meta.main)
  await runCommand({
    name: "simulate",
    help: HELP,
    flags: {
      seeds: integer(undefined, MAX_SEED),
      seed: integer(undefined, MAX_SEED),
      only: names(SIMULATION_NAMES),
    },
    async main({ seed, seeds = seed === undefined ? DEFAULT_SEEDS : 1, only = SIMULATION_NAMES }) {
      const first = seed ?? 1 + Math.floor(Math.random() * (MAX_SEED - seeds));
      const perSimulation = Math.ceil(seeds / only.length);
      process.stderr.write(`seeds from ${first} on\n`);
      for (const name of only) {
        process.stderr.write(`${name}\n`);
        for (let i = 0; i < perSimulation; i++) {
          // This allows an interrupt to arrive.
          if (i % SEEDS_PER_STEP === 0) await Bun.sleep(0);
          const problem = runSimulation(name, first + i);
          if (problem === undefined) continue;
          process.stdout.write(`${problem}\nnpm run simulate -- --only ${name} --seed ${first + i}\n`);
          return 1;
        }
      }
      process.stdout.write(`${formatCount(only.length * perSimulation)} seeds: pass\n`);
      return 0;
    },
  });
