import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { BoundedCache, AdmissionFilter } from "../src/bounded-cache.ts";

describe("a bounded map", () => {
  test("lets go of the oldest when there is no room, and of nothing before", () => {
    const map = new BoundedCache<string, { bytes: number }>(10);
    for (const [key, bytes] of [
      ["a", 4],
      ["b", 4],
      ["c", 2],
    ] as const)
      map.set(key, { bytes });
    expect(["a", "b", "c"].map((key) => map.get(key)?.bytes)).toEqual([4, 4, 2]);
    map.set("d", { bytes: 5 });
    expect(["a", "b", "c", "d"].map((key) => map.get(key)?.bytes)).toEqual([undefined, undefined, 2, 5]);
    map.set("too large", { bytes: 11 });
    expect(["c", "d", "too large"].map((key) => map.get(key)?.bytes)).toEqual([2, 5, undefined]);
  });

  test("counts what it holds, whatever is put in, replaced and taken out", () => {
    const step = fc.record({
      key: fc.integer({ min: 0, max: 9 }),
      bytes: fc.option(fc.integer({ min: 1, max: 40 })),
    });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const map = new BoundedCache<number, { bytes: number }>(100);
        for (const { key, bytes } of steps) {
          if (bytes === null) map.delete(key);
          else map.set(key, { bytes });
          if (bytes !== null) expect(map.get(key)?.bytes).toBe(bytes);
          const held = Array.from({ length: 10 }, (_, i) => map.get(i)?.bytes ?? 0);
          expect(held.reduce((sum, bytes) => sum + bytes)).toBeLessThanOrEqual(100);
        }
        // If deletions were miscounted, room for everything would be missing by now.
        for (let i = 0; i < 10; i++) map.delete(i);
        for (let i = 0; i < 10; i++) map.set(i, { bytes: 10 });
        expect(Array.from({ length: 10 }, (_, i) => map.get(i)?.bytes)).toEqual(Array(10).fill(10));
      }),
    );
  });
});

test("a admissionFilter knows who was there before, until another takes the place", () => {
  const admissionFilter = new AdmissionFilter(8);
  expect([0, 0, 3, 3, 11, 3].map((number) => admissionFilter.knows(number))).toEqual([
    false,
    true,
    false,
    true,
    false,
    false,
  ]);
});
