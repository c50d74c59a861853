import { expect, test } from "bun:test";
import { Collector } from "../../src/http1/garbage-collection.ts";

test("garbage is collected after a busy tenth of a second, and not after a quiet one", () => {
  let collections = 0;
  const collector = new Collector(() => void collections++);
  const after = (requests: number) => {
    for (let i = 0; i < requests; i++) collector.count();
    collector.tick();
    return collections;
  };
  expect([after(99), after(100), after(0), after(5_000)]).toEqual([0, 1, 1, 2]);
  collector.stop();
});
