import { expect, test } from "bun:test";
import { Latch } from "../../src/api/latch.ts";

test("a failure is reported once until it is over, and so is the recovery", () => {
  const reported: unknown[] = [];
  const latch = new Latch(
    (error) => reported.push(error),
    () => reported.push("works again"),
  );
  latch.worked();
  for (const error of ["first", "second"]) latch.failed(error);
  expect(latch.isFailing).toBeTrue();
  for (let i = 0; i < 2; i++) latch.worked();
  expect(latch.isFailing).toBeFalse();
  latch.failed("third");
  expect(reported).toEqual(["first", "works again", "third"]);
});
