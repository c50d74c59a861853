import { expect, spyOn, test } from "bun:test";
import { Latch } from "../../src/api/latch.ts";
import { scheduler } from "../../src/event-loop.ts";

test("a failure is reported once until it is over, and so is the recovery with its time", () => {
  using now = spyOn(scheduler, "now").mockReturnValue(1_000);
  const reported: unknown[] = [];
  const latch = new Latch(
    (error) => reported.push(error),
    (afterMs) => reported.push(afterMs),
  );
  latch.worked();
  for (const error of ["first", "second"]) latch.failed(error);
  expect(latch.isFailing).toBeTrue();
  now.mockReturnValue(2_500.4);
  for (let i = 0; i < 2; i++) latch.worked();
  expect(latch.isFailing).toBeFalse();
  latch.failed("third");
  expect(reported).toEqual(["first", 1_500, "third"]);
});
