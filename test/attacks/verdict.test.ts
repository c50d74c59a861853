import { expect, test } from "bun:test";
import { ATTACKS, attacksOn } from "../../attacks/attacks.ts";
import { attackTable, problemsOf, sharedProblemsOf } from "../../attacks/verdict.ts";

const FAST = { p50: 1, p99: 49.9, worst: 900, requests: 400 };
const SLOW = { ...FAST, p99: 50 };
const GOOD = { keptConnection: FAST, newConnections: FAST, cpuWait: 0, failures: [] };

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

const SHARED = {
  freeKey: { allowed: 60, rejected: 140, failed: 0 },
  valkeyEntries: 3,
  valkeyOutages: 0,
  transactionsPerSecond: 100,
};

test("on shared engines a Free key gets exactly 60 requests, no more and no fewer", () => {
  const bars = { valkeyEntries: 3, transactionsPerSecond: 100 };
  expect(sharedProblemsOf({ bars }, SHARED)).toEqual([]);
  for (const allowed of [59, 61]) {
    expect(sharedProblemsOf({ bars }, { ...SHARED, freeKey: { ...SHARED.freeKey, allowed } })).toEqual([
      `a Free key got ${allowed} requests, its limit is 60`,
    ]);
  }
  expect(sharedProblemsOf({ bars }, { ...SHARED, valkeyOutages: 2 })).toEqual([
    "Valkey counted as unavailable 2 times",
  ]);
  expect(sharedProblemsOf({ bars }, { ...SHARED, valkeyEntries: 4, transactionsPerSecond: 101 })).toEqual([
    "4 entries in Valkey, bar 3",
    "101 transactions a second in PostgreSQL, bar 100",
  ]);
});

test("the table has the columns of the shared engines where they were used", () => {
  const result = { name: "a", title: "an attack", problems: [] };
  expect(attackTable([result], "").header).not.toContain("Free key");
  const { header, rows } = attackTable([{ ...result, shared: SHARED }, result], "");
  expect(header).toContain("Free key");
  expect(rows.map((row) => row.length)).toEqual([header.length, header.length]);
  expect(rows[0]).toContain("60 of 60");
});

test("each of the engines has attacks, and a control", () => {
  expect(attacksOn("sqlite").map(({ name }) => name)).toContain("none");
  expect(attacksOn("shared").map(({ name }) => name)).toEqual([
    "none",
    "rejections",
    "unknown-keys",
    "many-addresses",
    "valkey-queue",
  ]);
});

test("the names of attacks differ", () => {
  expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length);
});
