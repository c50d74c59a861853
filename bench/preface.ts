import { contestant } from "./contestants.ts";
import type { Results } from "./results.ts";

/** What a reader has to know before believing a figure. */
export function preface(results: Results): string[] {
  const { machine, versions, seconds, rounds, pinned, animals, omitted } = results;
  const cores = pinned
    ? "server and load each on a core of its own"
    : "server and load not kept apart (fewer than two cores, or no taskset)";
  return [
    `Taken ${results.takenAt} on ${machine.cores} cores of ${machine.cpu} (${machine.architecture}), ${machine.memoryGb} GB, Linux ${machine.kernel}, load before ${machine.load}.`,
    `${rounds} rounds of ${seconds} s each after a warm-up, every round in new processes, ${cores}; ${animals.toLocaleString("en")} animals unless said otherwise.`,
    `Figures are medians, with the lowest and highest round in brackets; ratios are taken round by round. "≥" marks figures at which the load generator was at its own limit.`,
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", "),
    ...omitted.map(({ id, reason }) => `Left out: ${contestant(id).title}: ${reason}.`),
  ];
}
