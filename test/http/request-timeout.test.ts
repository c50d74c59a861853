import { expect, jest, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import { HANDLING_TIMEOUT_MS } from "../../src/api/dispatch.ts";
import { withTimeout } from "../../src/runtime/timeout.ts";
import { useFakeTimers } from "../fake-timers.ts";

useFakeTimers();

const never = () => new Promise<string>(() => {});
const errorOf = (work: Promise<string>) => inTime(work).catch((error: unknown) => error);
const inTime = (work: Promise<string>) => withTimeout(HANDLING_TIMEOUT_MS, work, Unavailable);

test("work in time settles as it does without a timeout", async () => {
  expect(await inTime(Promise.resolve("done"))).toBe("done");
  expect(await errorOf(Promise.reject(new Error("own")))).toEqual(new Error("own"));
  expect(jest.getTimerCount()).toBe(0);
});

test("work that never settles is Unavailable after 7 seconds", async () => {
  let settled = false;
  const result = errorOf(never());
  void result.then(() => void (settled = true));
  jest.advanceTimersByTime(6_999);
  await Promise.resolve();
  expect(settled).toBe(false);
  jest.advanceTimersByTime(1);
  expect(await result).toBeInstanceOf(Unavailable);
});
