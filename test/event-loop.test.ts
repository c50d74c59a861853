import { expect, test } from "bun:test";
import { atEndOfIteration, forEachInTimeSlices, loadOnce, yieldToEventLoop } from "../src/event-loop.ts";

test("other work goes on while all items are looked at", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const seen: number[] = [];
  await forEachInTimeSlices(
    Array.from({ length: 96 }, (_, i) => i),
    (item) => {
      seen.push(item);
      const end = performance.now() + 0.2;
      while (performance.now() < end);
    },
  );
  clearInterval(timer);
  expect(seen).toEqual(Array.from({ length: 96 }, (_, i) => i));
  expect(turns).toBeGreaterThanOrEqual(2);
});

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
