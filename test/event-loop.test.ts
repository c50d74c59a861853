import { expect, test } from "bun:test";
import { atEndOfTurn, forEachInTurns, giveWay } from "../src/event-loop.ts";

test("other work goes on while all items are looked at", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  const seen: number[] = [];
  await forEachInTurns(
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

test("work for the end of a turn comes before work that gave way earlier, and is done once", async () => {
  const order: string[] = [];
  const longWork = giveWay().then(() => order.push("long work"));
  atEndOfTurn(() => order.push("first response"));
  atEndOfTurn(() => order.push("second response"));
  await longWork;
  await giveWay();
  expect(order).toEqual(["first response", "second response", "long work"]);
});

test("work for the end of a turn can ask for the end of the next one", async () => {
  const order: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  atEndOfTurn(() => {
    order.push("first turn");
    atEndOfTurn(() => {
      order.push("second turn");
      resolve();
    });
  });
  await promise;
  expect(order).toEqual(["first turn", "second turn"]);
});
