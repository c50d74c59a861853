import { expect, test } from "bun:test";
import { DEFAULT_BAN } from "../../../src/domain/ban-rules.ts";
import { KeyAndAddressLimiter } from "../../../src/rate-limit/key-and-address-limiter.ts";
import { MemoryRateLimiter } from "../../../src/rate-limit/memory-rate-limiter.ts";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { followOn, testUnbans } from "../../changes/unban-cases.ts";
import { TestClock } from "../../test-clock.ts";

/** Two servers on one key store and one PostgreSQL. The clocks of the servers and of PostgreSQL are a minute apart. */
async function openTwo() {
  const url = await postgresUrl();
  const testClock = new TestClock();
  const ban = () => DEFAULT_BAN;
  const open = async (clock: TestClock) => {
    const stores = await openPostgres(url, { schema: "production", timeoutMs: 30_000 });
    const keys = stores.openKeyLimiter({ clock, testClock, ban, server: "server" });
    const rateLimiter = new KeyAndAddressLimiter(keys, new MemoryRateLimiter({ clock, ban }));
    const close = rateLimiter.close.bind(rateLimiter);
    rateLimiter.close = async () => {
      await close();
      await stores.close();
    };
    return { clock, rateLimiter };
  };
  const servers = [
    await open(new TestClock(testClock.time - 60_000)),
    await open(new TestClock(testClock.time + 60_000)),
  ];
  return followOn(servers, testClock);
}

testUnbans([0, -60_000, 60_000], openTwo);

test("an unban that a server sees two minutes late leaves a later ban", async () => {
  const { keys, id, clock, followers, advance, outcome, getBanned, poll, stop } = await openTwo();
  const [one, other] = followers;
  await getBanned();
  await poll();
  other?.close();
  keys.update(id, { unbannedAt: clock.now() - 120_000 });
  await one?.applyNow();
  expect(await outcome()).toBe("limited");

  advance(31_000);
  await getBanned();
  advance(89_000);
  await other?.applyNow();
  expect(await outcome()).toBe("banned");
  await stop();
});
