import { simulateGroupCommit } from "./group-commit.ts";
import { simulateKeyChanges } from "./key-changes.ts";
import { simulateRateLimits } from "./rate-limits.ts";
import { World } from "./world.ts";
import { simulateWriteBehind } from "./write-behind.ts";

/** Each plays what its seed determines, and throws when the service breaks a promise. */
const SIMULATIONS = {
  "group-commit": simulateGroupCommit,
  "write-behind": simulateWriteBehind,
  "key-changes": simulateKeyChanges,
  "rate-limits": simulateRateLimits,
} as const;

export type SimulationName = keyof typeof SIMULATIONS;
export const SIMULATION_NAMES = Object.keys(SIMULATIONS) as SimulationName[];

/** Returns what went wrong, with its history; undefined when all went well. */
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
