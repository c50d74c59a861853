import { expect, test } from "bun:test";
import { inPlace } from "../../src/console/still-rows.ts";

const rowsOf = (...ids: readonly number[]) => ids.map((id) => ({ id, version: 1 }));

test("rows of a list stay in their order with their latest values, without those that are gone, and new ones are last", () => {
  const latest = [
    { id: 4, version: 2 },
    { id: 3, version: 2 },
    { id: 1, version: 2 },
  ];
  expect(inPlace(rowsOf(1, 2, 3), latest, false)).toEqual({
    rows: [
      { id: 1, version: 2 },
      { id: 3, version: 2 },
      { id: 4, version: 2 },
    ],
    arrived: 0,
  });
});

test("rows of a feed stay as they are, also those that have left it, and new ones are counted", () => {
  expect(inPlace(rowsOf(3, 2, 1), rowsOf(5, 4, 3), true)).toEqual({ rows: rowsOf(3, 2, 1), arrived: 2 });
  expect(inPlace(rowsOf(3, 2), rowsOf(3, 2), true)).toEqual({ rows: rowsOf(3, 2), arrived: 0 });
});
