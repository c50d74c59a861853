import { describe, expect, test } from "bun:test";
import { NEVER, newStanding, type Standing, type Subject } from "../../src/domain/rate-limit.ts";
import type { Ledger } from "../../src/domain/ports.ts";

/** A ledger on a place of its own that holds nothing yet. */
export interface OpenedLedger {
  readonly ledger: Ledger;
  /** Closes it and opens another on the same data. */
  reopen(): Ledger;
  /** Closes whichever is open, and removes the data. */
  close(): void;
}

const AT = Date.UTC(2026, 10, 15, 9, 30);

const busy: Standing = {
  minute: { openedAt: AT, used: 60, refusedAt: AT + 10, strikes: 3 },
  day: { openedAt: AT - 5_000, used: 1_000, refusedAt: NEVER, strikes: 0 },
  bannedAt: AT + 1,
  bannedUntil: AT + 300_001,
};

const all = (ledger: Ledger) => new Map(ledger.load());

/** What any Ledger must do. */
export function ledgerConformance(name: string, open: () => OpenedLedger): void {
  const withLedger = (work: (ledger: Ledger, opened: OpenedLedger) => void) => () => {
    const opened = open();
    try {
      work(opened.ledger, opened);
    } finally {
      opened.close();
    }
  };

  describe(`${name} as a Ledger`, () => {
    test(
      "a ledger without entries loads nothing and finds nothing",
      withLedger((ledger) => {
        expect(all(ledger)).toEqual(new Map());
        expect(ledger.find("key:1")).toBeUndefined();
      }),
    );

    test(
      "what was saved is there after a restart, every number of it",
      withLedger((ledger, { reopen }) => {
        const entries: [Subject, Standing][] = [
          ["key:1", busy],
          ["key:12", newStanding()],
          ["address:2001:db8:0:1::/64", { ...busy, bannedAt: NEVER, bannedUntil: NEVER }],
        ];
        ledger.save(entries);
        const again = reopen();
        expect(all(again)).toEqual(new Map(entries));
        for (const [subject, standing] of entries) expect(again.find(subject)).toStrictEqual(standing);
      }),
    );

    test(
      "a later save takes the place of an earlier one, and leaves the others",
      withLedger((ledger) => {
        ledger.save([
          ["key:1", newStanding()],
          ["key:2", newStanding()],
        ]);
        ledger.save([["key:1", busy]]);
        expect(ledger.find("key:1")).toStrictEqual(busy);
        expect(ledger.find("key:2")).toStrictEqual(newStanding());
      }),
    );

    test(
      "undefined forgets a subject, known or not",
      withLedger((ledger) => {
        ledger.save([["key:1", busy]]);
        ledger.save([
          ["key:1", undefined],
          ["key:2", undefined],
        ]);
        expect(all(ledger)).toEqual(new Map());
      }),
    );

    test(
      "a save that fails half-way has saved nothing, and the next one works",
      withLedger((ledger) => {
        function* broken(): Generator<readonly [Subject, Standing]> {
          yield ["key:1", busy];
          throw new Error("half-way");
        }
        expect(() => ledger.save(broken())).toThrow("half-way");
        expect(all(ledger)).toEqual(new Map());
        ledger.save([["key:1", busy]]);
        expect(all(ledger)).toEqual(new Map([["key:1", busy]]));
      }),
    );
  });
}
