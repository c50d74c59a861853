import { beforeAll, expect, test } from "bun:test";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { DAY_MS, newUsage, type Usage } from "../../../src/domain/rate-limit.ts";
import { readUsages, writeUsages } from "../../../src/rate-limit/valkey/maintenance.ts";
import { key } from "../../subjects.ts";

let valkey: Parameters<typeof readUsages>[0];
beforeAll(async () => void (valkey = { urls: [await valkeyUrl()], prefix: "test:" }));

/** Valkey counts by its own clock. */
function usageSince(openedAt: number, changes: Partial<Usage> = {}): Usage {
  const window = { openedAt, used: 5, firstRejectedAt: openedAt + 10, strikes: 3 };
  return { ...newUsage(), minute: { ...window }, day: { ...window, used: 50 }, ...changes };
}

test("usage that is written is read again, with its ban, and replaces what was there", async () => {
  const now = Date.now() - 1_000;
  const [first, second] = [
    usageSince(now),
    usageSince(now, { bannedAt: now, bannedUntil: now + 20 * DAY_MS }),
  ];
  expect(await writeUsages(valkey, [[key(1), usageSince(now - 500)]])).toBe(1);
  expect(
    await writeUsages(valkey, [
      [key(1), first],
      [key(2), second],
    ]),
  ).toBe(2);
  expect(await readUsages(valkey, [1, 2, 3])).toEqual([
    [key(1), first],
    [key(2), second],
  ]);
});

test("usage that has expired is not written, and removes what was there", async () => {
  await writeUsages(valkey, [[key(5), usageSince(Date.now())]]);
  expect(await writeUsages(valkey, [[key(5), usageSince(Date.now() - 2 * DAY_MS)]])).toBe(0);
  expect(await readUsages(valkey, [5])).toEqual([]);
});

test("hundreds of keys are written and read in batches", async () => {
  const now = Date.now();
  const ids = Array.from({ length: 250 }, (_, i) => 100 + i);
  expect(
    await writeUsages(
      valkey,
      ids.map((id) => [key(id), usageSince(now)]),
    ),
  ).toBe(250);
  expect((await readUsages(valkey, ids)).map(([{ id }]) => id)).toEqual(ids);
});

test("a Valkey that is unavailable is an error without its password", async () => {
  const read = readUsages({ urls: ["redis://:s3cret@127.0.0.1:1"], prefix: "test:" }, [1]);
  await expect(read).rejects.toThrow("connect ECONNREFUSED 127.0.0.1:1");
  await read.catch((error: unknown) => expect(Bun.inspect(error)).not.toContain("s3cret"));
});
