import { expect, test } from "bun:test";
import { BoundedMap } from "../../src/runtime/bounded-map.ts";

test("a full map evicts what was set longest ago; an entry that is set again counts as new", () => {
  const map = new BoundedMap<string, number>(3);
  map.set("a", 1).set("b", 2).set("c", 3);
  map.get("b");
  map.set("a", 4).set("d", 5);
  expect([...map]).toEqual([
    ["c", 3],
    ["a", 4],
    ["d", 5],
  ]);
  map.set("c", 6);
  expect([...map.keys()]).toEqual(["a", "d", "c"]);
});
