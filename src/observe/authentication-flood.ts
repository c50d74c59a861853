import type { Addresses } from "../auth/client-address.ts";
import type { Log } from "./log.ts";
import type { RequestObserver } from "../petstore/request-record.ts";

/** Requests without a valid key within a minute. */
const MANY = 100;
const MINUTE_MS = 60_000;
/** Requests of further addresses are counted in all, but not by address. */
const MAX_ADDRESSES = 1_000;

export interface FloodOptions {
  readonly addresses: Pick<Addresses, "subjectOf">;
  readonly log: Log;
}

/**
 * Logs when many requests have no valid API key: once at the hundredth within a minute, and then once a minute while
 * each minute has a hundred or more. An event has the number of requests since the last one.
 */
export function observeFloods({ addresses, log }: FloodOptions): RequestObserver {
  const byAddress = new Map<string, number>();
  let requests = 0;
  let countingSince = 0;
  let isReported = false;

  function restart(): void {
    requests = 0;
    countingSince = performance.now();
    byAddress.clear();
  }

  function report(): void {
    const [address, requestsOfAddress] = most(byAddress);
    log.event("authentication.flood", { requests, address, requestsOfAddress });
    isReported = true;
    restart();
    setTimeout(endMinute, MINUTE_MS).unref();
  }

  function endMinute(): void {
    if (requests >= MANY) return report();
    isReported = false;
    restart();
  }

  return ({ principal, request }) => {
    if (typeof principal !== "string") return;
    if (!isReported && performance.now() - countingSince >= MINUTE_MS) restart();
    requests++;
    const { id } = addresses.subjectOf(request.remoteAddress, () => request.headers.get("x-forwarded-for"));
    const address = String(id);
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
