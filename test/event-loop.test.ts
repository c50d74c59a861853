import { expect, test } from "bun:test";
import { forEachInTurns } from "../src/event-loop.ts";

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
