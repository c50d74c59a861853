import { describe, expect, test } from "bun:test";
import { BoundedCache, CacheStatistics, RepeatFilter, stringBytes } from "../../src/runtime/bounded-cache.ts";
import * as fc from "fast-check";

describe("BoundedCache", () => {
  test("evicts the oldest entries, and only when it is full", () => {
    const cache = new BoundedCache<string, { bytes: number }>(10);
    for (const [key, bytes] of [
      ["a", 4],
      ["b", 4],
      ["c", 2],
    ] as const)
      cache.set(key, { bytes });
    expect(["a", "b", "c"].map((key) => cache.get(key)?.bytes)).toEqual([4, 4, 2]);
    cache.set("d", { bytes: 5 });
    expect(["a", "b", "c", "d"].map((key) => cache.get(key)?.bytes)).toEqual([undefined, undefined, 2, 5]);
    cache.set("too large", { bytes: 11 });
    expect(["c", "d", "too large"].map((key) => cache.get(key)?.bytes)).toEqual([2, 5, undefined]);
    cache.set("all", { bytes: 10 });
    expect([cache.get("all")?.bytes, cache.bytes]).toEqual([10, 10]);
  });

  test("never exceeds its bound, whatever is set, replaced and deleted", () => {
    const step = fc.record({
      key: fc.integer({ min: 0, max: 9 }),
      bytes: fc.option(fc.integer({ min: 1, max: 40 })),
    });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const cache = new BoundedCache<number, { bytes: number }>(100);
        for (const { key, bytes } of steps) {
          if (bytes === null) cache.delete(key);
          else cache.set(key, { bytes });
          if (bytes !== null) expect(cache.get(key)?.bytes).toBe(bytes);
          const sizes = Array.from({ length: 10 }, (_, i) => cache.get(i)?.bytes ?? 0);
          const total = sizes.reduce((sum, size) => sum + size);
          expect(total).toBeLessThanOrEqual(100);
          expect(cache.bytes).toBe(total);
        }
      }),
    );
  });
});

test("a cache has had no request at the start", () => {
  expect({ ...new CacheStatistics() }).toEqual({ hits: 0, misses: 0 });
});

describe("RepeatFilter", () => {
  test("finds the second request, unless another request has taken its place", () => {
    const filter = new RepeatFilter(8);
    const repeats = [0, 0, 3, 3, 11, 3].map((number) => filter.isRepeat(number));
    expect(repeats).toEqual([false, true, false, true, false, false]);
  });
});

describe("stringBytes", () => {
  test("one byte a character in ASCII, two otherwise", () => {
    expect([stringBytes(""), stringBytes("Rex"), stringBytes("Réx")]).toEqual([0, 3, 6]);
  });
});
