import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { newUsage, type Subject } from "../../src/domain/rate-limit.ts";
import { Hashed } from "../../src/rate-limit/memory/hashed.ts";
import { Numbered, NUMBERED_KEYS, numberOf } from "../../src/rate-limit/memory/numbered.ts";
import { LIVE, NONE, QUEUED, SAVED } from "../../src/rate-limit/memory/slots.ts";

const keys = fc.nat(3_000).map((id): Subject => `key:${id}`);
const addresses = fc.string({ unit: "binary", maxLength: 60 }).map((text): Subject => `address:${text}`);

for (const { Kind, subjects } of [
  { Kind: Numbered, subjects: keys },
  { Kind: Hashed, subjects: fc.oneof(keys, addresses) },
]) {
  describe(Kind.name, () => {
    test("it finds what a Map finds, through any additions and removals", () => {
      const change = fc.record({ subject: subjects, remove: fc.boolean() });
      fc.assert(
        fc.property(fc.array(change, { maxLength: 400, size: "max" }), (changes) => {
          const slots = new Kind();
          const expected = new Map<Subject, number>();
          for (const { subject, remove } of changes) {
            const slot = expected.get(subject) ?? NONE;
            expect(slots.find(subject)).toBe(slot);
            if (slot === NONE) expected.set(subject, slots.add(subject));
            else if (remove) {
              expected.delete(subject);
              slots.remove(slot);
            }
          }
          expect(slots.size).toBe(expected.size);
          expect(new Set(expected.values()).size).toBe(expected.size);
          for (const [subject, slot] of expected) expect(slots.find(subject)).toBe(slot);
        }),
        { numRuns: 50 },
      );
    });

    test("grown to 20,000 subjects and shrunk again, it finds each that is left", () => {
      const slots = new Kind();
      const given = Array.from({ length: 20_000 }, (_, i) => slots.add(`key:${i}`));
      given.forEach((slot, i) => i % 3 === 0 || slots.remove(slot));
      given.forEach((slot, i) => expect(slots.find(`key:${i}`)).toBe(i % 3 === 0 ? slot : NONE));
    });

    test("a slot gives back the subject and the usage that it was given", () => {
      const slots = new Kind();
      const usage = newUsage();
      Object.assign(usage.minute, { openedAt: 1.8e12, used: 1e9, refusedAt: 1.8e12 + 2, strikes: 1e6 });
      Object.assign(usage.day, {
        openedAt: 1.8e12 + 4,
        used: 1e9 + 1,
        refusedAt: 1.8e12 + 6,
        strikes: 1e6 + 1,
      });
      Object.assign(usage, { bannedAt: 1.8e12 + 8, bannedUntil: 1.8e12 + 9 });
      const slot = slots.add("key:1000000");
      slots.add("key:2");
      slots.setFlags(slot, 255);
      slots.store(slot, usage);
      expect(slots.flags(slot)).toBe(255);
      const loaded = newUsage();
      slots.load(slot, loaded);
      expect(loaded).toEqual(usage);
      expect(slots.subjectAt(slot)).toBe("key:1000000");
    });

    test("a slot that is used again begins afresh, and still waits in the queue it was in", () => {
      const slots = new Kind();
      const slot = slots.add("key:1");
      slots.store(slot, { ...newUsage(), bannedUntil: 5 });
      slots.setFlags(slot, slots.flags(slot) | QUEUED | SAVED);
      slots.remove(slot);
      expect(slots.add("key:1")).toBe(slot);
      expect(slots.flags(slot)).toBe(LIVE | QUEUED);
      const loaded = newUsage();
      slots.load(slot, loaded);
      expect(loaded).toEqual(newUsage());
    });
  });
}

test("the longest name of an address is filed as it is, a longer one as a digest of its own", () => {
  const slots = new Hashed();
  expect(slots.subjectAt(slots.add("address:ffff:ffff:ffff:ffff::/64"))).toBe(
    "address:ffff:ffff:ffff:ffff::/64",
  );
  const long = slots.add(`address:${"x".repeat(100)}`);
  expect(slots.subjectAt(long)).toMatch(/^address:[\w-]{32}$/);
  expect(slots.find(slots.subjectAt(long))).toBe(long);
});

describe("numberOf", () => {
  for (const number of [0, 1, 10, 999, NUMBERED_KEYS - 1]) {
    test(`key:${number} lives in its own slot`, () => expect(numberOf(`key:${number}`)).toBe(number));
  }

  const others = ["key:-1", "key:1.5", "key:1e5", `key:${NUMBERED_KEYS}`, "key:9007199254740991"] as const;
  for (const subject of [...others, "address:1", "address:", "key:01", "key:", "key:٣", "KEY:1", ""]) {
    test(`'${subject}' does not`, () => expect(numberOf(subject as Subject)).toBe(NONE));
  }
});
