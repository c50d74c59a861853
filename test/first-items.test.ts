import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { FirstItems } from "../src/first-items.ts";

interface Item {
  readonly size: number;
  readonly place: number;
}

test("the first items are those of the sorted list, and equal items stay in their order", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 9 })), fc.integer({ min: 1, max: 12 }), (sizes, limit) => {
      const items = sizes.map((size, place): Item => ({ size, place }));
      const compare = (a: Item, b: Item) => a.size - b.size;
      const first = new FirstItems(limit, compare);
      for (const item of items) first.add(item);
      expect(first.items).toEqual(items.toSorted(compare).slice(0, limit));
    }),
  );
});
