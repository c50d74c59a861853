import type { Ledger } from "../../src/domain/ports.ts";
import { createMemoryLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import type { OpenLimiter } from "../conformance/limiter.ts";
import { MapLedger } from "./ledgers.ts";

/** So long that only closing writes: no tick of real time comes between the steps of a test. */
const NEVER_MS = 3_600_000;

/** Opens in-process limiters, each on the ledger that `ledgers` gives; asked again at a restart. */
export function openOn(ledgers: () => () => Ledger): OpenLimiter {
  return ({ ban, startsAt }) => {
    let time = startsAt;
    const clock = { now: () => time };
    const openLedger = ledgers();
    const start = () => createMemoryLimiter({ clock, ban, ledger: openLedger(), flushEveryMs: NEVER_MS });
    let limiter = start();
    return {
      get limiter() {
        return limiter;
      },
      now: clock.now,
      advance: (ms) => void (time += ms),
      async restart() {
        await limiter.close();
        limiter = start();
      },
      close: () => limiter.close(),
    };
  };
}

export const openOnMaps = openOn(() => {
  const ledger = new MapLedger();
  return () => ledger;
});
