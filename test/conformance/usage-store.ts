import { describe, expect, test } from "bun:test";
import { NEVER, newUsage, type Usage, type Subject } from "../../src/domain/rate-limit.ts";
import type { UsageStore } from "../../src/domain/ports.ts";

/** A usageStore on a place of its own that holds nothing yet. */
export interface OpenedUsageStore {
  readonly usageStore: UsageStore;
  /** Closes it and opens another on the same data. */
  reopen(): UsageStore;
  /** Closes whichever is open, and removes the data. */
  close(): void;
}

const AT = Date.UTC(2026, 10, 15, 9, 30);

const busy: Usage = {
  minute: { openedAt: AT, used: 60, refusedAt: AT + 10, strikes: 3 },
  day: { openedAt: AT - 5_000, used: 1_000, refusedAt: NEVER, strikes: 0 },
  bannedAt: AT + 1,
  bannedUntil: AT + 300_001,
};

const all = (usageStore: UsageStore) => new Map(usageStore.load());

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
      "a usageStore without entries loads nothing and finds nothing",
      withUsageStore((usageStore) => {
        expect(all(usageStore)).toEqual(new Map());
        expect(usageStore.find("key:1")).toBeUndefined();
      }),
    );

    test(
      "what was saved is there after a restart, every number of it",
      withUsageStore((usageStore, { reopen }) => {
        const entries: [Subject, Usage][] = [
          ["key:1", busy],
          ["key:12", newUsage()],
          ["address:2001:db8:0:1::/64", { ...busy, bannedAt: NEVER, bannedUntil: NEVER }],
        ];
        usageStore.save(entries);
        const again = reopen();
        expect(all(again)).toEqual(new Map(entries));
        for (const [subject, usage] of entries) expect(again.find(subject)).toStrictEqual(usage);
      }),
    );

    test(
      "a later save takes the place of an earlier one, and leaves the others",
      withUsageStore((usageStore) => {
        usageStore.save([
          ["key:1", newUsage()],
          ["key:2", newUsage()],
        ]);
        usageStore.save([["key:1", busy]]);
        expect(usageStore.find("key:1")).toStrictEqual(busy);
        expect(usageStore.find("key:2")).toStrictEqual(newUsage());
      }),
    );

    test(
      "undefined forgets a subject, known or not",
      withUsageStore((usageStore) => {
        usageStore.save([["key:1", busy]]);
        usageStore.save([
          ["key:1", undefined],
          ["key:2", undefined],
        ]);
        expect(all(usageStore)).toEqual(new Map());
      }),
    );

    test(
      "a save that fails half-way has saved nothing, and the next one works",
      withUsageStore((usageStore) => {
        function* broken(): Generator<readonly [Subject, Usage]> {
          yield ["key:1", busy];
          throw new Error("half-way");
        }
        expect(() => usageStore.save(broken())).toThrow("half-way");
        expect(all(usageStore)).toEqual(new Map());
        usageStore.save([["key:1", busy]]);
        expect(all(usageStore)).toEqual(new Map([["key:1", busy]]));
      }),
    );
  });
}
