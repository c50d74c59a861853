import { expect, test } from "bun:test";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { ReusedCounts } from "../../src/store/reused-counts.ts";
import { SQLITE_DIALECT } from "../../src/store/sqlite/dialect.ts";

const ROWS = [{ state: "active", total: 3n } as const];
const COUNT_MS = 50;

/** Counts the statements that count keys. Each takes 50 ms. */
function counted() {
  const counts = new ReusedCounts();
  const { now } = scheduler;
  let ms = 7_000;
  let times = 0;
  const read = (query: Parameters<ReusedCounts["read"]>[0], revision = 7n) => {
    scheduler.now = () => ms;
    const steps = counts.read(query, SQLITE_DIALECT);
    let step = steps.next();
    while (step.done !== true) {
      const isCount = step.value.sql.includes("count(*)");
      if (isCount) ms += COUNT_MS;
      times += isCount ? 1 : 0;
      step = steps.next(isCount ? ROWS : [{ revision }]);
    }
    scheduler.now = now;
    expect(step.value).toEqual(ROWS);
    return times;
  };
  return read;
}

test("keys are counted once for the pages of a list, for a hundred times as long as that took", () => {
  const read = counted();
  const query = { limit: 50, now: 1_000 };
  expect(read(query)).toBe(1);
  expect(read({ ...query, after: 7, sort: "name" })).toBe(1);
  expect(read({ ...query, filter: { isRevoked: false, state: "active" } })).toBe(1);
  expect(read({ ...query, now: 1_000 + 100 * COUNT_MS - 1 })).toBe(1);
  expect(read({ ...query, now: 1_000 + 100 * COUNT_MS })).toBe(2);
  expect(read({ ...query, now: 1_000 })).toBe(3);
});

test("keys are counted again with another condition, after a change and after a ban", () => {
  const read = counted();
  const query = { limit: 50, now: 1_000 };
  expect(read(query)).toBe(1);
  expect(read({ ...query, filter: { plan: "free" } })).toBe(2);
  expect(read(query)).toBe(2);
  expect(read(query, 8n)).toBe(3);
  expect(read({ ...query, bannedKeys: [5] }, 8n)).toBe(4);
  for (let i = 0; i < 2; i++) read({ ...query, filter: { unusedSince: 5 } }, 8n);
  expect(read(query, 8n)).toBe(6);
});

test("the counts of at most 16 conditions are kept", () => {
  const read = counted();
  const queryOf = (i: number) => ({ limit: 50, now: 1_000, filter: { owner: `owner ${i}` } });
  for (let i = 0; i < 17; i++) read(queryOf(i));
  expect(read(queryOf(16))).toBe(17);
  expect(read(queryOf(0))).toBe(18);
});
