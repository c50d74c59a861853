import { expect, test } from "bun:test";
import type { RateLimiter } from "../../src/domain/ports/rate-limiter.ts";
import { key } from "../subjects.ts";
import type { TestClock } from "../test-clock.ts";
import { MapKeyStore } from "../auth/map-key-store.ts";
import { followSilently, openAuthenticator } from "../auth/open-authenticator.ts";

const LIMITS = { perMinute: 1, perDay: 100 };

export interface Server {
  readonly rateLimiter: RateLimiter;
  readonly clock: TestClock;
}

/** Servers on one key store, with a key that the first one bans. `clock` is the one that bans are counted by. */
export async function followOn(servers: readonly Server[], clock: TestClock) {
  const keys = new MapKeyStore();
  const clocks = new Set([clock, ...servers.map((server) => server.clock)]);
  const followers = await Promise.all(
    servers.map(async (server) => {
      const { authenticator, reader } = await openAuthenticator({ keys, clock: server.clock });
      return followSilently({ authenticator, reader, ...server });
    }),
  );
  const { id } = keys.create();
  const advance = (ms: number) => clocks.forEach((each) => each.advance(ms));
  const outcome = async () => (await servers[0]?.rateLimiter.decide(key(id), LIMITS))?.outcome;
  return {
    keys,
    id,
    clock,
    followers,
    advance,
    outcome,
    async getBanned() {
      while ((await outcome()) === "allowed");
      while ((await outcome()) !== "banned") advance(1_001);
    },
    /** Every server applies the changes up to now. */
    async poll() {
      for (const follower of followers) await follower.applyNow();
    },
    async stop() {
      for (const follower of followers) follower.close();
      for (const { rateLimiter } of servers) await rateLimiter.close();
    },
  };
}

export type Followed = Awaited<ReturnType<typeof followOn>>;

/** The operator's clock differs from that of the rate limiter. */
export function testUnbans(differencesMs: readonly number[], open: () => Promise<Followed>): void {
  test.each(differencesMs)(
    "an unban ends the ban, and no change of the key ends a later one; the operator's clock is off by %d ms",
    async (differenceMs) => {
      const { keys, id, clock, advance, outcome, getBanned, poll, stop } = await open();
      await getBanned();
      keys.update(id, { plan: "pro" });
      await poll();
      expect(await outcome()).toBe("banned");
      keys.update(id, { unbannedAt: clock.now() + differenceMs });
      await poll();
      expect(await outcome()).toBe("limited");

      advance(31_000);
      await getBanned();
      keys.update(id, { plan: "free" });
      await poll();
      expect(await outcome()).toBe("banned");
      await stop();
    },
  );
}
