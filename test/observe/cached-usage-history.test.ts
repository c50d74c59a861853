import { expect, test } from "bun:test";
import type { UsageHistoryStore } from "../../src/domain/ports.ts";
import type { KeyTotals } from "../../src/domain/usage-history.ts";
import { reusedSums } from "../../src/observe/usage-history.ts";

const HOUR_MS = 3_600_000;
const DAY = { by: "hour", since: 0, until: 24 * HOUR_MS } as const;

function setUp() {
  const state = { now: 0, reads: 0, pending: Promise.withResolvers<readonly KeyTotals[]>() };
  const store: Pick<UsageHistoryStore, "usageByKey"> = {
    usageByKey: () => (state.reads++, state.pending.promise),
  };
  const history = reusedSums(store as UsageHistoryStore, () => state.now);
  /** A read that takes this long. */
  const finish = async (ms: number, totals: readonly KeyTotals[] = []) => {
    state.now += ms;
    state.pending.resolve(totals);
    await new Promise((resolve) => setImmediate(resolve));
    state.pending = Promise.withResolvers();
  };
  return { state, history, finish };
}

test("sums that took 70 ms are reused for 7 seconds", async () => {
  const { state, history, finish } = setUp();
  const first = history.usageByKey(DAY);
  expect(history.usageByKey(DAY)).toBe(first);
  await finish(70, [{ keyId: 1, admitted: 1, limited: 0, banned: 0, errors: 0 }]);
  expect(state.reads).toBe(1);
  state.now += 6_999;
  // The same intervals, though not the same times.
  expect(history.usageByKey({ ...DAY, since: 1, until: DAY.until + 5 })).toBe(first);
  state.now += 1;
  void history.usageByKey(DAY);
  expect(state.reads).toBe(2);
});

test("sums of another period or of another number of keys are read", async () => {
  const { state, history, finish } = setUp();
  void history.usageByKey(DAY);
  void history.usageByKey({ ...DAY, limit: 20 });
  void history.usageByKey({ ...DAY, since: HOUR_MS });
  await finish(70);
  expect(state.reads).toBe(3);
});

test("sums are reused for at most 30 seconds, and at most four of them are kept", async () => {
  const { state, history, finish } = setUp();
  for (const limit of [1, 2, 3, 4, 5]) void history.usageByKey({ ...DAY, limit });
  await finish(5_000);
  state.now += 29_999;
  void history.usageByKey({ ...DAY, limit: 5 });
  void history.usageByKey({ ...DAY, limit: 2 });
  expect(state.reads).toBe(5);
  void history.usageByKey({ ...DAY, limit: 1 });
  expect(state.reads).toBe(6);
  state.now += 1;
  void history.usageByKey({ ...DAY, limit: 5 });
  expect(state.reads).toBe(7);
});

test("an error is not reused", async () => {
  const { state, history } = setUp();
  const failed = history.usageByKey(DAY);
  state.pending.reject(new Error("down"));
  await expect(failed).rejects.toThrow("down");
  state.pending = Promise.withResolvers();
  void history.usageByKey(DAY);
  expect(state.reads).toBe(2);
});
