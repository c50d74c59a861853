import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { HashIndex, hashInt32, hashText, NONE } from "../src/hash-index.ts";

/** Record i has keys[i]; the hash function decides which keys collide. */
function setUp(hash: (key: number) => number) {
  const keys: number[] = [];
  const index = new HashIndex<number>((record, key) => keys[record] === key);
  return {
    find: (key: number) => index.find(hash(key), key),
    add(key: number) {
      const record = keys.push(key) - 1;
      index.add(hash(key), record);
      return record;
    },
    remove: (key: number, record: number) => index.remove(hash(key), record),
  };
}

const HASHES: Record<string, (key: number) => number> = {
  "hashes that differ": hashInt32,
  "equal hashes": () => -1,
  "hashes that wrap around the end of a table": (key) => -1 - (key % 7),
  "hashes in one table": (key) => key % 50,
};

describe.each(Object.entries(HASHES))("%s", (_, hash) => {
  test("finds what a Map finds, through any additions and removals", () => {
    const change = fc.record({ key: fc.nat(100), remove: fc.boolean() });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 300, size: "max" }), (changes) => {
        const index = setUp(hash);
        const records = new Map<number, number>();
        for (const { key, remove } of changes) {
          const record = records.get(key) ?? NONE;
          expect(index.find(key)).toBe(record);
          if (record === NONE) records.set(key, index.add(key));
          else if (remove) {
            index.remove(key, record);
            records.delete(key);
          }
        }
        for (let key = 0; key <= 100; key++) expect(index.find(key)).toBe(records.get(key) ?? NONE);
      }),
      { numRuns: 100 },
    );
  });
});

test("a search compares less than one other record on average, among 100,000", () => {
  let comparisons = 0;
  const index = new HashIndex<number>((record, key) => {
    comparisons++;
    return record === key;
  });
  for (let i = 0; i < 100_000; i++) index.add(hashInt32(i), i);
  for (let i = 0; i < 100_000; i++) expect(index.find(hashInt32(i), i)).toBe(i);
  expect(comparisons).toBeLessThan(100_100);
});

test("to remove a record that is not in the index is an error", () => {
  const index = new HashIndex<number>(() => true);
  index.add(5, 1);
  expect(() => index.remove(5, 2)).toThrow(RangeError);
});

test("hashes of similar texts differ in their highest and lowest bits", () => {
  const hashes = Array.from({ length: 4_096 }, (_, i) => hashText(`10.0.${i >>> 8}.${i & 255}`));
  expect(new Set(hashes).size).toBe(4_096);
  expect(new Set(hashes.map((hash) => hash >>> 24)).size).toBe(256);
  expect(new Set(hashes.map((hash) => hash & 255)).size).toBe(256);
});
