import { expect, spyOn, test } from "bun:test";
import {
  atEndOfIteration,
  loadOnce,
  reuseBriefly,
  scheduler,
  yieldToEventLoop,
} from "../../src/runtime/event-loop.ts";

test("work for the end of an iteration comes before work that yielded earlier, and is done once", async () => {
  const order: string[] = [];
  const longWork = yieldToEventLoop().then(() => order.push("long work"));
  atEndOfIteration(() => order.push("first response"));
  atEndOfIteration(() => order.push("second response"));
  await longWork;
  await yieldToEventLoop();
  expect(order).toEqual(["first response", "second response", "long work"]);
});

test("work for the end of an iteration can ask for the end of the next one", async () => {
  const order: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  atEndOfIteration(() => {
    order.push("first iteration");
    atEndOfIteration(() => {
      order.push("second iteration");
      resolve();
    });
  });
  await promise;
  expect(order).toEqual(["first iteration", "second iteration"]);
});

test("a value is loaded once, however many ask for it, and again after an error", async () => {
  let loads = 0;
  const load = loadOnce(async () => (++loads === 1 ? Promise.reject(new Error("first")) : loads));
  expect(await Promise.allSettled([load(), load()])).toMatchObject([
    { status: "rejected" },
    { status: "rejected" },
  ]);
  expect(await Promise.all([load(), load()])).toEqual([2, 2]);
  expect(load()).toBe(2);
});

test("a value that took 70 ms twice is reused for 7 seconds, one that took 5 seconds for 30, and an error not at all", async () => {
  let now = 0;
  let loads = 0;
  let cost = 70;
  const clock = spyOn(scheduler, "now").mockImplementation(() => now);
  const read = reuseBriefly(async () => {
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
