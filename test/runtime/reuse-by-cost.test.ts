import { expect, spyOn, test } from "bun:test";
import { reuseByCost } from "../../src/runtime/reuse-by-cost.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";

test("a value that took 70 ms twice is reused for 7 seconds, one that took 5 seconds for 30, and an error not at all", async () => {
  let now = 0;
  let loads = 0;
  let cost = 70;
  const clock = spyOn(scheduler, "now").mockImplementation(() => now);
  const read = reuseByCost(async () => {
    now += cost;
    loads++;
    if (cost === 0) throw new Error("down");
  });
  const loadsAfter = async (ms: number) => {
    now += ms;
    // Calls at the same time wait for one value.
    await Promise.allSettled([read(), read()]);
    return loads;
  };
  // The first time may have been the start of a thread.
  expect([await loadsAfter(0), await loadsAfter(1_999)]).toEqual([1, 1]);
  expect([await loadsAfter(1), await loadsAfter(6_999)]).toEqual([2, 2]);
  cost = 5_000;
  expect([await loadsAfter(1), await loadsAfter(6_999)]).toEqual([3, 3]);
  expect([await loadsAfter(1), await loadsAfter(29_999)]).toEqual([4, 4]);
  cost = 0;
  expect([await loadsAfter(1), await loadsAfter(0)]).toEqual([5, 6]);
  clock.mockRestore();
});
