import { expect, test } from "bun:test";
import { ATTACKS } from "../../attacks/attacks.ts";
import { problemsOf } from "../../attacks/verdict.ts";

const FAST = { p50: 1, p99: 49.9, worst: 900, requests: 400 };
const SLOW = { ...FAST, p99: 50 };
const GOOD = { keptConnection: FAST, newConnections: FAST, failures: [] };

test("a p99 of 50 ms is too slow, on either kind of connection, unless the attack says otherwise", () => {
  expect(problemsOf({ bars: {} }, 100, GOOD)).toEqual([]);
  expect(problemsOf({ bars: {} }, 100, { ...GOOD, keptConnection: SLOW })).toEqual([
    "kept connection: p99 50.0 ms, bar 50 ms",
  ]);
  expect(problemsOf({ bars: {} }, 100, { ...GOOD, newConnections: SLOW })).toHaveLength(1);
  expect(problemsOf({ bars: { p99Ms: 60 } }, 100, { ...GOOD, newConnections: SLOW })).toEqual([]);
});

test("memory beyond the bound of the attack is a problem, and so is a request that fails", () => {
  expect(problemsOf({ bars: { memoryMb: 200 } }, 201, GOOD)).toEqual(["memory 201 MB, bar 200 MB"]);
  expect(problemsOf({ bars: {} }, 100, { ...GOOD, failures: ["status 503", "status 429"] })).toEqual([
    "2 requests failed: status 503",
  ]);
});

test("the names of attacks differ", () => {
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length);
});
