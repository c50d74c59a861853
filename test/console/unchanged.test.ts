import { expect, test } from "bun:test";
import { keepUnchanged } from "../../src/console/unchanged.ts";

test("what is equal is the same object as before, and what differs is new", () => {
  const last = { times: [1, 2], totals: { requests: 5, id: 9_007_199_254_740_993n }, next: null };
  expect(keepUnchanged(last, structuredClone(last))).toBe(last);
  const changed = { ...structuredClone(last), totals: { requests: 6, id: 9_007_199_254_740_993n } };
  const kept = keepUnchanged(last, changed);
  expect(kept).toEqual(changed);
  expect([kept === last, kept.times === last.times, kept.totals === last.totals]).toEqual([
    false,
    true,
    false,
  ]);
});

test.each([
  [[1, 2], [1]],
  [[1], [1, 2]],
  [{ a: 1 }, { b: 1 }],
  [{ 0: 1 }, [1]],
  [null, {}],
  [[], null],
  [undefined, [1]],
])("%j and %j differ", (last: unknown, next: unknown) => {
  expect(keepUnchanged(last, next)).toBe(next);
});
