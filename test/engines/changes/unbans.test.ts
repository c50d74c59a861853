import { expect, test } from "bun:test";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { DEFAULT_BAN } from "../../../src/domain/ban-rules.ts";
import { followOn, testUnbans } from "../../changes/unban-cases.ts";
import { openWithoutFallback } from "../../rate-limit/open-valkey.ts";
import { TestClock } from "../../test-clock.ts";

/** Two servers on one key store and one Valkey. The clocks of the servers and of Valkey are a minute apart. */
async function openTwo() {
  const url = await valkeyUrl();
  const valkeyClock = new TestClock();
  const open = async (clock: TestClock) => ({
    clock,
    rateLimiter: await openWithoutFallback({ url, clock, testClock: valkeyClock, ban: () => DEFAULT_BAN }),
  });
  const servers = [
    await open(new TestClock(valkeyClock.time - 60_000)),
    await open(new TestClock(valkeyClock.time + 60_000)),
  ];
  return followOn(servers, valkeyClock);
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
