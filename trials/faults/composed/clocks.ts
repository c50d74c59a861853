import type { Fleet } from "../../harness/fleet.ts";
import { sendOnce } from "../../harness/http-connection.ts";
import { MachineClock } from "../../harness/machine-clock.ts";
import type { ClockPeriod } from "./history.ts";
import { SERVERS } from "./schedule.ts";

const ASK_EVERY_MS = 50;
const SHOWN_WITHIN_MS = 30_000;
/**
 * The tolerance of times. The Date header has whole seconds, and the response may have waited. Every step is longer.
 */
const TOLERANCE_MS = 3_000;

/** The clocks of the servers' machines, one for each. */
export class ServerClocks {
  readonly periods: ClockPeriod[] = [];
  readonly #clocks = Array.from({ length: SERVERS }, () => new MachineClock());
  /** The time that each clock shows, and since when. */
  readonly #shown = new Map<number, Pick<ClockPeriod, "from" | "aheadMs">>();

  readonly under = (index: number) => this.#clocks[index]?.under ?? [];

  /** Resolves when the server shows the time, and has noticed the step unless it has started since. */
  async set(fleet: Fleet, index: number, aheadS: number, now: () => number): Promise<void> {
    const server = index + 1;
    const from = now();
    const before = this.#shown.get(index);
    if (before) this.periods.push({ ...before, server, until: from });
    const first = fleet.servers[index];
    const logged = first?.log.length;
    this.#clocks[index]?.set(aheadS);
    for (;;) {
      const current = fleet.servers[index];
      const isNoticed =
        current !== first || current?.log.slice(logged).some(({ event }) => event === "clock.changed");
      if (isNoticed && (await isShown(fleet.ports[index] ?? 0, aheadS))) break;
      if (now() > from + SHOWN_WITHIN_MS) throw new Error(`server ${server} has not noticed it`);
      await Bun.sleep(ASK_EVERY_MS);
    }
    const until = now();
    this.periods.push({ server, from, until, aheadMs: undefined });
    this.#shown.set(index, { from: until, aheadMs: aheadS * 1_000 });
  }
}

/** Whether a response shows that time. */
async function isShown(port: number, aheadS: number): Promise<boolean> {
  const response = await sendOnce(port, { path: "/healthz" }).catch(() => undefined);
  const shownAheadMs = Date.parse(response?.headers.date ?? "") - Date.now();
  return Math.abs(shownAheadMs - aheadS * 1_000) < TOLERANCE_MS;
}
