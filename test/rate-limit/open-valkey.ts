import type { RateLimiter } from "../../src/domain/ports/rate-limiter.ts";
import { createClock } from "../../src/clock.ts";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import { MemoryKeyCounter } from "../../src/rate-limit/memory/memory-key-counter.ts";
import { MemoryRateLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import {
  openValkeyRateLimiter,
  type ValkeyRateLimiterOptions,
} from "../../src/rate-limit/valkey/open-valkey-rate-limiter.ts";
import type { OpenRateLimiter } from "../conformance/rate-limiter.ts";
import { TestClock } from "../test-clock.ts";
import { restartable } from "./open-memory.ts";

/** A time so long that a busy machine does not look like an unavailable Valkey. */
export const PATIENT = { timeoutMs: 30_000, backgroundTimeoutMs: 30_000 };

type Settings = Partial<ValkeyRateLimiterOptions> & { readonly url: string | readonly string[] };

/** A rate limiter on Valkey with the settings of the service, and an in-process one as its fallback. */
export function openWithFallback(settings: Settings): Promise<RateLimiter> {
  const { clock = createClock(), ban = () => DEFAULT_BAN, url } = settings;
  return openValkeyRateLimiter({
    urls: [url].flat(),
    prefix: "petstore:",
    timeoutMs: 500,
    clock,
    ban,
    addresses: new MemoryRateLimiter({ clock, ban }),
    counter: new MemoryKeyCounter({ clock, ban }),
    ...settings,
  });
}

/** A rate limiter that fails the test when its fallback decides: the fallback would pass most tests too. */
export function openWithoutFallback(settings: Settings): Promise<RateLimiter> {
  return openWithFallback({ ...PATIENT, onStateChange: fail, ...settings });
}

function fail(state: string, cause?: unknown): never {
  throw new Error(`Valkey is ${state}`, { cause });
}

let opened = 0;

/** Rate limiters whose scripts use the test's clock, each with keys of its own. */
export function openOnValkey(url: () => string | readonly string[]): OpenRateLimiter {
  return ({ ban, startsAt, onBan }) => {
    const clock = new TestClock(startsAt);
    const prefix = `test:${opened++}:`;
    return restartable(clock, () =>
      openWithoutFallback({ url: url(), clock, testClock: clock, ban: () => ban, onBan, prefix }),
    );
  };
}

/** The state changes that a rate limiter reported, in order. */
export class StateChanges {
  readonly states: string[] = [];
  readonly causes: unknown[] = [];
  #wake = () => {};

  readonly onStateChange = (state: "available" | "unavailable", cause?: unknown): void => {
    this.states.push(state);
    this.causes.push(cause);
    this.#wake();
  };

  /** Resolves after this many changes. */
  async reach(count: number): Promise<void> {
    while (this.states.length < count) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
