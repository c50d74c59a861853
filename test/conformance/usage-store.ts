import { describe, expect, test } from "bun:test";
import { NEVER, newUsage, type Subject, type Usage } from "../../src/domain/rate-limit.ts";
import type { UsageStore } from "../../src/domain/ports.ts";
import { address, key, textOf } from "../subjects.ts";

/** An empty usage store. */
export interface OpenedUsageStore {
  readonly usageStore: UsageStore;
  /** Closes the store and opens another on the same data. */
  reopen(): UsageStore;
  /** Closes the open store, and removes the data. */
  close(): void;
}

const AT = Date.UTC(2026, 10, 15, 9, 30);

const busy: Usage = {
  minute: { openedAt: AT, used: 60, firstRejectedAt: AT + 10, strikes: 3 },
  day: { openedAt: AT - 5_000, used: 1_000, firstRejectedAt: NEVER, strikes: 0 },
  bannedAt: AT + 1,
  bannedUntil: AT + 300_001,
  lastBanEndedAt: NEVER,
  lastBanMs: 0,
};

const all = (usageStore: UsageStore) =>
  [...usageStore.load()].toSorted(([one], [other]) => textOf(one).localeCompare(textOf(other)));

/** What any UsageStore must do. */
export function usageStoreConformance(name: string, open: () => OpenedUsageStore): void {
  const withUsageStore = (work: (usageStore: UsageStore, opened: OpenedUsageStore) => void) => () => {
    const opened = open();
    try {
      work(opened.usageStore, opened);
    } finally {
      opened.close();
    }
  };

  describe(`${name} as a UsageStore`, () => {
    test(
      "saved usage is the same after a restart",
      withUsageStore((usageStore, { reopen }) => {
        const entries: [Subject, Usage][] = [
          [address("2001:db8:0:1::/64"), { ...busy, bannedAt: NEVER, bannedUntil: NEVER }],
          [key(1), busy],
          [key(2), { ...newUsage(), lastBanEndedAt: AT + 5, lastBanMs: 2_400_000 }],
          [key(9_007_199_254_740_991), newUsage()],
        ];
        usageStore.save(entries);
        const again = reopen();
        expect(all(again)).toEqual(entries);
        for (const [subject, usage] of entries) expect(again.find(subject)).toStrictEqual(usage);
      }),
    );

    test(
      "a save replaces the usage of its subjects; undefined deletes a subject, and one that is not stored too",
      withUsageStore((usageStore) => {
        expect(usageStore.find(key(1))).toBeUndefined();
        usageStore.save([
          [key(1), newUsage()],
          [key(3), newUsage()],
        ]);
        usageStore.save([[key(1), busy]]);
        expect(usageStore.find(key(1))).toStrictEqual(busy);
        usageStore.save([
          [key(1), undefined],
          [key(2), undefined],
        ]);
        expect(all(usageStore)).toEqual([[key(3), newUsage()]]);
      }),
    );

    test(
      "a save that fails half-way saves nothing, and the next one works",
      withUsageStore((usageStore) => {
        function* broken(): Generator<readonly [Subject, Usage]> {
          yield [key(1), busy];
          throw new Error("half-way");
        }
        expect(() => usageStore.save(broken())).toThrow("half-way");
        expect(all(usageStore)).toEqual([]);
        usageStore.save([[key(1), busy]]);
        expect(all(usageStore)).toEqual([[key(1), busy]]);
      }),
    );
  });
}
