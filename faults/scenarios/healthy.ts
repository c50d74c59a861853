import type { Fleet } from "../../test/instances/fleet.ts";
import { storm } from "../../test/instances/storm.ts";
import { onlyErrors, WHATEVER_HAPPENS } from "../expectations.ts";
import { type TwoEngines, twoEngines } from "../ground.ts";
import type { Findings, Scenario } from "../scenario.ts";

const ROUNDS = 5;
const AT_ONCE = 2_000;
const PER_MINUTE = 60;

/**
 * Of 2,000 at once on a Free key, all servers together admit 60: for several keys, one after the other. A server that
 * takes Valkey for away counts for itself and says so, which may happen on a machine as busy as a storm makes it.
 */
async function storms({ fleet }: TwoEngines): Promise<Findings> {
  const admitted: number[] = [];
  const problems: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const { key } = await fleet.newKey("free");
    const turnsBefore = turnsOf(fleet);
    const heard = await storm(fleet.urls, key, AT_ONCE);
    const count = heard.filter(({ status }) => status === 200).length;
    const most = PER_MINUTE * (1 + turnsOf(fleet) - turnsBefore);
    if (count < PER_MINUTE || count > most)
      problems.push(`${count} were admitted, and ${most} at most may be`);
    admitted.push(count);
  }
  const note = `of 2,000 requests at once on a Free key, admitted: ${admitted.join(", ")}`;
  return { notes: [`${note}; servers took Valkey for away ${turnsOf(fleet)} ×`], problems };
}

function turnsOf({ logs }: Fleet): number {
  return logs.flat().filter(({ event }) => event.startsWith("Valkey is away")).length;
}

export const HEALTHY: readonly Scenario<TwoEngines>[] = [
  {
    name: "healthy",
    title: "nothing",
    prepare: () => twoEngines({ servers: 2 }),
    begin: async () => {},
    lastsMs: 4_000,
    expectations: [...WHATEVER_HAPPENS, onlyErrors()],
  },
  {
    name: "storm",
    title: "five storms of 2,000 requests at once on a Free key, over four servers",
    prepare: () => twoEngines({ servers: 4 }),
    begin: async () => {},
    during: storms,
    expectations: [...WHATEVER_HAPPENS, onlyErrors()],
  },
];
