import { Unavailable } from "../api/errors.ts";
import type { AuthFailure } from "../domain/api-keys.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { MINUTE_MS } from "../text/time-units.ts";
import type { Log } from "./log.ts";

/** How many requests without a valid key within a minute are reported. */
const MANY = 100;
/** Requests from further addresses are counted in the total, but not by address. */
const MAX_ADDRESSES = 1_000;

/**
 * Logs when many requests have no valid API key: once at the hundredth within a minute, and then once a minute while
 * each minute has a hundred or more. Each event has the number of requests since the one before.
 */
export function watchFloods(log: Log): (failure: AuthFailure, address: string) => void {
  const byAddress = new Map<string, number>();
  let requests = 0;
  let countingSince = -Infinity;
  let isReported = false;

  function restart(): void {
    requests = 0;
    countingSince = scheduler.now();
    byAddress.clear();
  }

  function report(): void {
    const [address, requestsOfAddress] = most(byAddress);
    log.event("authentication.flood", { requests, address, requestsOfAddress });
    isReported = true;
    restart();
    scheduler.setTimeout(endMinute, MINUTE_MS).unref();
  }

  function endMinute(): void {
    if (requests >= MANY) return report();
    isReported = false;
    restart();
  }

  return (failure, address) => {
    if (failure instanceof Unavailable) return;
    if (!isReported && scheduler.now() - countingSince >= MINUTE_MS) restart();
    requests++;
    const count = byAddress.get(address);
    if (count !== undefined || byAddress.size < MAX_ADDRESSES) byAddress.set(address, (count ?? 0) + 1);
    if (requests === MANY && !isReported) report();
  };
}

function most(counts: ReadonlyMap<string, number>): [address: string, count: number] {
  let found: [string, number] = ["", 0];
  for (const entry of counts) if (entry[1] > found[1]) found = entry;
  return found;
}
