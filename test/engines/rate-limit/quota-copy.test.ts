import { expect, test } from "bun:test";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { newQuota, type Quota } from "../../../src/domain/rate-limit.ts";
import { DAY_MS } from "../../../src/text/time-units.ts";
import { readQuotas, writeQuotas } from "../../../src/rate-limit/valkey/maintenance.ts";

/** Valkey counts by its own clock. */
function quotaSince(openedAt: number, changes: Partial<Quota> = {}): Quota {
  const window = { openedAt, used: 5, graceBeganAt: openedAt + 10, strikes: 3 };
  return { ...newQuota(), minute: { ...window }, day: { ...window, used: 50 }, ...changes };
}

test("the quota of hundreds of keys is written and read, with bans, and replaces what was there; expired quota removes it", async () => {
  const valkey = { urls: [await valkeyUrl()], prefix: "test:" };
  const now = Date.now() - 1_000;
  const banned = { bannedAt: now, bannedUntil: now + 20 * DAY_MS };
  const quotas = Array.from({ length: 250 }, (_, i) => [i, quotaSince(now, i % 2 ? banned : {})] as const);
  const earlier = quotas.map(([id]) => [id, quotaSince(now - 500)] as const);
  for (const each of [earlier, quotas]) expect(await writeQuotas(valkey, each)).toBe(250);
  const ids = quotas.map(([id]) => id);
  expect<unknown>(await readQuotas(valkey, [...ids, 999])).toEqual(quotas);
  expect(await writeQuotas(valkey, [[5, quotaSince(Date.now() - 2 * DAY_MS)]])).toBe(0);
  expect(await readQuotas(valkey, [5])).toEqual([]);
});
