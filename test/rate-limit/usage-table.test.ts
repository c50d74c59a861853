import { describe, expect, test } from "bun:test";
import { newUsage, type Subject } from "../../src/domain/rate-limit.ts";
import { IS_KEY, NONE, QUEUED, SAVED, UsageTable } from "../../src/rate-limit/memory/usage-table.ts";
import { address, key, textOf } from "../subjects.ts";
import * as fc from "fast-check";

/** A key below this id has the slot with its number; every other subject is found by hash. */
const KEY_SLOTS = 1_048_576;

const KINDS: Record<string, { subject: (i: number) => Subject; subjects: fc.Arbitrary<Subject> }> = {
  "keys with small ids": { subject: key, subjects: fc.nat(3_000).map(key) },
  "keys with great ids": {
    subject: (i) => key(KEY_SLOTS + i),
    subjects: fc.integer({ min: KEY_SLOTS, max: KEY_SLOTS + 3_000 }).map(key),
  },
  addresses: {
    subject: (i) => address(`10.0.0.${i}`),
    subjects: fc.oneof(
      fc.nat(3_000).map((i) => address(`${KEY_SLOTS + i}`)),
      fc.string({ maxLength: 63 }).map(address),
    ),
  },
};

const anySubject = fc.oneof(...Object.values(KINDS).map(({ subjects }) => subjects));

test("finds what a Map finds, through any additions and removals", () => {
  const change = fc.record({ subject: anySubject, remove: fc.boolean() });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 400, size: "max" }), (changes) => {
      const table = new UsageTable();
      const slots = new Map<string, { subject: Subject; slot: number }>();
      for (const { subject, remove } of changes) {
        const { slot } = slots.get(textOf(subject)) ?? { slot: NONE };
        if (table.find(subject) !== slot) throw new Error(`${textOf(subject)} is not in its slot`);
        if (slot === NONE) slots.set(textOf(subject), { subject, slot: table.add(subject) });
        else if (remove) {
          slots.delete(textOf(subject));
          table.remove(slot);
        }
      }
      expect(table.size).toBe(slots.size);
      expect(new Set(slots.values().map(({ slot }) => slot)).size).toBe(slots.size);
      for (const { subject, slot } of slots.values()) {
        if (table.find(subject) !== slot || !table.isLive(slot))
          throw new Error(`${textOf(subject)} is lost`);
      }
    }),
    { numRuns: 100 },
  );
});

describe.each(Object.entries(KINDS))("%s", (_, { subject }) => {
  test("a slot returns the subject, the usage and the flags that were stored", () => {
    const table = new UsageTable();
    const window = { openedAt: 1.8e12, used: 1e9, firstRejectedAt: 1.8e12 + 2, strikes: 1e6 };
    const usage = {
      minute: window,
      day: { openedAt: 1.8e12 + 4, used: 1e9 + 1, firstRejectedAt: 1.8e12 + 6, strikes: 1e6 + 1 },
      bannedAt: 1.8e12 + 8,
      bannedUntil: 1.8e12 + 9,
      lastBanEndedAt: -1,
      lastBanMs: 0,
    };
    const slot = table.add(subject(7));
    table.add(subject(8));
    const flags = table.flags(slot) | QUEUED | SAVED;
    table.setFlags(slot, flags);
    table.store(slot, usage);
    const loaded = newUsage();
    table.load(slot, loaded);
    expect(loaded).toEqual(usage);
    const after = { ...usage, bannedAt: -1, bannedUntil: -1, lastBanEndedAt: 1.8e12 + 9, lastBanMs: 1 };
    table.store(slot, after);
    table.load(slot, loaded);
    expect(loaded).toEqual(after);
    expect(table.flags(slot)).toBe(flags);
    expect((flags & IS_KEY) !== 0).toBe(subject(7).kind === "key");
    expect(table.subjectAt(slot)).toEqual(subject(7));
  });

  test("a slot that is used again has a new usage, and is still queued for the store", () => {
    const table = new UsageTable();
    const slot = table.add(subject(1));
    table.store(slot, { ...newUsage(), bannedUntil: 5 });
    table.setFlags(slot, table.flags(slot) | QUEUED | SAVED);
    table.remove(slot);
    expect(table.isLive(slot)).toBe(false);
    expect(table.add(subject(1))).toBe(slot);
    expect(table.isLive(slot)).toBe(true);
    expect(table.flags(slot) & (QUEUED | SAVED)).toBe(QUEUED);
    const loaded = newUsage();
    table.load(slot, loaded);
    expect(loaded).toEqual(newUsage());
  });
});

test("an id has at most 63 characters of ASCII", () => {
  const table = new UsageTable();
  const longest = address("x".repeat(63));
  expect(table.subjectAt(table.add(longest))).toEqual(longest);
  for (const id of ["x".repeat(64), "é", "a\nb"]) expect(() => table.add(address(id))).toThrow(RangeError);
  expect(table.size).toBe(1);
});

test("a few keys with ids far apart take few slots", () => {
  const table = new UsageTable();
  for (const id of [KEY_SLOTS, 2 ** 40, Number.MAX_SAFE_INTEGER]) table.add(key(id));
  expect(table.ranges.reduce((sum, { start, end }) => sum + end - start, 0)).toBe(3);
});
