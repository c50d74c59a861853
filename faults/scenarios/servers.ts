import { onlyErrors, waitsAtMost, WHATEVER_HAPPENS } from "../expectations.ts";
import { type TwoEngines, twoEngines } from "../ground.ts";
import type { Scenario } from "../scenario.ts";

/**
 * A client that meets a closed door goes to the next one; nothing else may go wrong. Servers that start take the
 * machine's time from those that serve, so waits are only held to be no hang.
 */
const DOORS_CLOSED = [
  ...WHATEVER_HAPPENS,
  onlyErrors("no connection", "409 idempotency_conflict"),
  waitsAtMost(1_000),
];

export const SERVERS: readonly Scenario<TwoEngines>[] = [
  {
    name: "rolling-restart",
    title: "four servers restarted one by one, three times over",
    prepare: () => twoEngines({ servers: 4 }),
    async begin({ fleet }) {
      for (let round = 0; round < 3; round++) {
        for (const [member] of fleet.urls.entries()) {
          const code = await fleet.end(member, "SIGTERM");
          if (code !== 0) throw new Error(`a server ended with ${code}`);
          await fleet.revive(member);
        }
      }
    },
    expectations: DOORS_CLOSED,
  },
  {
    name: "server-killed",
    title: "one of two servers killed (SIGKILL), started again 3 s later",
    prepare: () => twoEngines({ servers: 2 }),
    async begin({ fleet }) {
      await fleet.end(0, "SIGKILL");
    },
    lastsMs: 3_000,
    end: ({ fleet }) => fleet.revive(0),
    expectations: DOORS_CLOSED,
  },
];
