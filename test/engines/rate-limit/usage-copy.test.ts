import { expect, test } from "bun:test";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { DAY_MS, newUsage, type Usage } from "../../../src/domain/rate-limit.ts";
import { readUsages, writeUsages } from "../../../src/rate-limit/valkey/maintenance.ts";
import { key } from "../../subjects.ts";

/** Valkey counts by its own clock. */
function usageSince(openedAt: number, changes: Partial<Usage> = {}): Usage {
  const window = { openedAt, used: 5, firstRejectedAt: openedAt + 10, strikes: 3 };
  return { ...newUsage(), minute: { ...window }, day: { ...window, used: 50 }, ...changes };
}

test("the usage of hundreds of keys is written and read, with bans, and replaces what was there; expired usage removes it", async () => {
  const valkey = { urls: [await valkeyUrl()], prefix: "test:" };
  const now = Date.now() - 1_000;
  const banned = { bannedAt: now, bannedUntil: now + 20 * DAY_MS };
  const usages = Array.from(
    { length: 250 },
    (_, i) => [key(i), usageSince(now, i % 2 ? banned : {})] as const,
  );
  const earlier = usages.map(([subject]) => [subject, usageSince(now - 500)] as const);
  for (const each of [earlier, usages]) expect(await writeUsages(valkey, each)).toBe(250);
  const ids = usages.map(([{ id }]) => id);
  expect<unknown>(await readUsages(valkey, [...ids, 999])).toEqual(usages);
  expect(await writeUsages(valkey, [[key(5), usageSince(Date.now() - 2 * DAY_MS)]])).toBe(0);
  expect(await readUsages(valkey, [5])).toEqual([]);
});
