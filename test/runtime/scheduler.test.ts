import { expect, test } from "bun:test";
import { atEndOfIteration, yieldToEventLoop } from "../../src/runtime/scheduler.ts";

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
