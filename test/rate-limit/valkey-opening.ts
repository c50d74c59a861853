import { DEFAULT_BAN } from "../../src/domain/rate-limit.ts";
import type { RateLimiter } from "../../src/domain/ports.ts";
import { createMemoryRateLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { createValkeyRateLimiter, type ValkeyRateLimiterOptions } from "../../src/rate-limit/valkey/index.ts";
import type { OpenLimiter } from "../conformance/limiter.ts";

/** Where nothing fails on purpose, a machine that is busy must not look like a Valkey that is dead. */
const PATIENT_MS = 5_000;

const systemClock = { now: () => Date.now() };

type Settings = Partial<ValkeyRateLimiterOptions> & Pick<ValkeyRateLimiterOptions, "url">;

/** A rateLimiter on Valkey with an in-process one to fall back on, and otherwise the settings of the service. */
export function openFallible(settings: Settings): Promise<RateLimiter> {
  const { clock = systemClock, ban = DEFAULT_BAN } = settings;
  return createValkeyRateLimiter({
    clock,
    ban,
    fallback: createMemoryRateLimiter({ clock, ban }),
    ...settings,
  });
}

/** One that may not fall back: what the fallback answers would pass as well, and say nothing of Valkey. */
export function openPatient(settings: Settings): Promise<RateLimiter> {
  return openFallible({ commandTimeoutMs: PATIENT_MS, onTurn: refuse, ...settings });
}

function refuse(state: string, cause?: unknown): never {
  throw new Error(`Valkey is ${state}`, { cause });
}

let opened = 0;

/** Limiters whose scripts go by the test's clock, each with keys of its own. */
export function openOnValkey(url: () => string | readonly string[]): OpenLimiter {
  return async ({ ban, startsAt }) => {
    let time = startsAt;
    const clock = { now: () => time };
    const prefix = `test:${opened++}:`;
    const start = () => openPatient({ url: url(), clock, testClock: clock, ban, prefix });
    let rateLimiter = await start();
    return {
      get rateLimiter() {
        return rateLimiter;
      },
      now: clock.now,
      advance: (ms) => void (time += ms),
      async restart() {
        await rateLimiter.close();
        rateLimiter = await start();
      },
      close: () => rateLimiter.close(),
    };
  };
}

/** What a rateLimiter told of Valkey, in order, to be waited for. */
export class Turns {
  readonly told: string[] = [];
  readonly causes: unknown[] = [];
  #wake = () => {};

  readonly onTurn = (state: "lost" | "back", cause?: unknown): void => {
    this.told.push(state);
    this.causes.push(cause);
    this.#wake();
  };

  /** Resolves once this many turns have been told. */
  async reach(count: number): Promise<void> {
    while (this.told.length < count) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
