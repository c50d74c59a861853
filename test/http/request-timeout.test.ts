import { expect, jest, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import { withTimeout } from "../../src/api/dispatch.ts";
import { useFakeTimers } from "../fake-timers.ts";

useFakeTimers();

const never = () => new Promise<string>(() => {});
const errorOf = (work: Promise<string>) => work.catch((error: unknown) => error);

test("work in time settles as it does without a timeout", async () => {
  expect(await withTimeout(Promise.resolve("done"))).toBe("done");
  expect(await errorOf(withTimeout(Promise.reject(new Error("own"))))).toEqual(new Error("own"));
  expect(jest.getTimerCount()).toBe(0);
});

test("work that never settles is Unavailable after 7 seconds", async () => {
  let settled = false;
  const result = errorOf(withTimeout(never()));
  void result.then(() => void (settled = true));
  jest.advanceTimersByTime(6_999);
  await Promise.resolve();
  expect(settled).toBe(false);
  jest.advanceTimersByTime(1);
  expect(await result).toBeInstanceOf(Unavailable);
});
