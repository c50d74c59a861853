import { expect, spyOn, test } from "bun:test";
import { FailureReporter } from "../../src/runtime/failure-reporter.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";

test("a failure is reported once until it is over, and so is the recovery with its time", () => {
  using now = spyOn(scheduler, "now").mockReturnValue(1_000);
  const reported: unknown[] = [];
  const failures = new FailureReporter(
    (error) => reported.push(error),
    (afterMs) => reported.push(afterMs),
  );
  failures.succeeded();
  for (const error of ["first", "second"]) failures.failed(error);
  expect(failures.isFailing).toBeTrue();
  now.mockReturnValue(2_500.4);
  for (let i = 0; i < 2; i++) failures.succeeded();
  expect(failures.isFailing).toBeFalse();
  failures.failed("third");
  expect(reported).toEqual(["first", 1_500, "third"]);
});
