import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { cursorAfter, cursorSchema, encodeCursor, type ListName } from "../../src/domain/cursor.ts";
import { INT64_MAX } from "../../src/api/json.ts";
import { Invalid } from "../../src/api/schema.ts";

const list = fc.constantFrom<ListName>("pets", "orders");
const identifier = fc.oneof(fc.bigInt({ min: 0n, max: INT64_MAX }), fc.constantFrom(0n, 1n, INT64_MAX));
const other = (name: ListName): ListName => (name === "pets" ? "orders" : "pets");

test("a cursor needs no escaping, and gives its identifier, in its own list only", () => {
  fc.assert(
    fc.property(list, identifier, (name, after) => {
      const cursor = encodeCursor(name, after);
      expect(cursor).toMatch(/^[0-9a-z]{8,20}$/);
      expect(cursorSchema(name).read(cursor)).toBe(after);
      expect(cursorSchema(other(name)).read(cursor)).toBeInstanceOf(Invalid);
    }),
  );
});

test("random strings are rejected", () => {
  const lookalike = fc.string({
    unit: fc.constantFrom(..."0123456789abcdefghijklmnopqrstuvwxyz"),
    maxLength: 24,
  });
  fc.assert(
    fc.property(list, fc.oneof(fc.string(), lookalike), (name, text) => {
      expect(cursorSchema(name).read(text)).toBeInstanceOf(Invalid);
    }),
    // Fixed, because one lookalike in some billions is bound to be a cursor.
    { seed: 20261115 },
  );
});

test("a cursor with one character changed is rejected", () => {
  fc.assert(
    fc.property(identifier, fc.nat(), fc.integer({ min: 1, max: 35 }), (after, at, shift) => {
      const cursor = encodeCursor("pets", after);
      const place = at % cursor.length;
      const changed = ((Number.parseInt(cursor.charAt(place), 36) + shift) % 36).toString(36);
      const forged = cursor.slice(0, place) + changed + cursor.slice(place + 1);
      expect(cursorSchema("pets").read(forged)).toBeInstanceOf(Invalid);
    }),
    { seed: 20261115 },
  );
});

test("leading zeros, capitals and white space are rejected", () => {
  const cursor = encodeCursor("pets", 12345n);
  const invalid = new Invalid('must be a cursor from the rel="next" link of this list');
  for (const text of [`0${cursor}`, cursor.toUpperCase(), ` ${cursor}`, `${cursor}\n`])
    expect(cursorSchema("pets").read(text)).toEqual(invalid);
});

test("an identifier beyond int64, or a value that is not a string, is rejected", () => {
  const beyond = [INT64_MAX + 1n, -1n].map((after) => encodeCursor("pets", after));
  for (const value of [...beyond, undefined, null, 5, 5n])
    expect(cursorSchema("pets").read(value)).toBeInstanceOf(Invalid);
});

test("cursors are the same on every server and in every release", () => {
  expect(encodeCursor("pets", 20n)).toBe("k1gwra6y");
  expect(encodeCursor("orders", INT64_MAX)).toBe("1y2p0ij32e8e70a0tm35");
});

test("the next page begins after the last item, or after the last row that was read", () => {
  const items = [{ id: 19 }, { id: 20n }];
  expect(cursorAfter("pets", { items, hasMore: true })).toBe("k1gwra6y");
  expect(cursorAfter("pets", { items: [{ id: 7 }], hasMore: true, readTo: 20n })).toBe("k1gwra6y");
  for (const last of [
    { items, hasMore: false },
    { items: [], hasMore: true },
  ])
    expect(cursorAfter("pets", last)).toBeNull();
});
