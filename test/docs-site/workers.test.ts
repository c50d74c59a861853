import { expect, test } from "bun:test";
import { GUIDE_SOURCES } from "../../src/docs-site/sources.ts";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import { decide, newQuota } from "../../src/domain/rate-limit.ts";
import { Random } from "../../trials/harness/random.ts";

type Fetch = () => Promise<Response>;

const STARTS_AT = 1_800_000_000_000;
const FREE = { perMinute: 60, perDay: 1_000 };
const RUN_MS = 15 * 60_000;

/** A clock that moves on to the next timer as soon as all work is done. */
class VirtualTime {
  now = STARTS_AT;
  readonly #timers: { readonly at: number; readonly fire: () => void }[] = [];

  readonly setTimeout = (fire: () => void, ms: number): void => {
    const at = this.now + ms;
    const index = this.#timers.findIndex((timer) => timer.at > at);
    this.#timers.splice(index === -1 ? this.#timers.length : index, 0, { at, fire });
  };

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.setTimeout(resolve, ms));
  }

  async run(ms: number): Promise<void> {
    const until = this.now + ms;
    while (this.now < until) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = this.#timers.shift();
      if (next === undefined) throw new Error("no worker is left");
      this.now = next.at;
      next.fire();
    }
  }
}

/** The function of the example, with a network, a clock and random numbers of the test. */
function exampleFunction(fetch: Fetch, time: VirtualTime, random: Random): Fetch {
  const [, text = ""] = /```js example=fetch\n([\s\S]*?)```/.exec(GUIDE_SOURCES["rate-limits"]) ?? [];
  const [functions = ""] = text.split("\nconst url");
  expect(functions).toContain("function fetchWithRetry(");
  const math = { ...Object.fromEntries([["min", Math.min]]), random: () => random.fraction() };
  const abortSignal = { timeout: () => null };
  // oxlint-disable-next-line no-new-func
  const make = new Function(
    "fetch",
    "setTimeout",
    "Math",
    "AbortSignal",
    `${functions}; return fetchWithRetry;`,
  );
  return make(fetch, time.setTimeout, math, abortSignal);
}

test.each([
  [50, 5, 20, 0],
  [50, 200, 1_500, 0],
  [50, 3_000, 3_000, 0],
  [50, 8_000, 8_000, 0],
  [25, 5, 20, 3_000],
  [50, 5, 50, 7_950],
])(
  "%d workers of the example for 429 on one Free key, with responses after %d to %d ms and pauses of %d ms: no ban",
  async (workers, leastMs, mostMs, pauseMs) => {
    const time = new VirtualTime();
    const random = new Random(7);
    const quota = newQuota();
    const counts = { allowed: 0, limited: 0, banned: 0 };
    const fetch = async () => {
      const oneWayMs = random.between(leastMs, mostMs) / 2;
      await time.sleep(oneWayMs);
      const { outcome, retryAfterSeconds } = decide(quota, FREE, Math.floor(time.now), DEFAULT_BAN);
      counts[outcome]++;
      await time.sleep(oneWayMs);
      const headers = { "Retry-After": `${retryAfterSeconds}` };
      return new Response("", outcome === "allowed" ? {} : { status: 429, headers });
    };
    const fetchWithRetry = exampleFunction(fetch, time, random);
    const work = async () => {
      for (;;) {
        await fetchWithRetry();
        await time.sleep(pauseMs);
      }
    };
    for (let worker = 0; worker < workers; worker++) void work();
    await time.run(RUN_MS);
    expect(counts).toMatchObject({ banned: 0 });
    expect(counts.allowed).toBeWithin(800, 901);
    expect(counts.limited).toBeGreaterThan(workers);
  },
);
