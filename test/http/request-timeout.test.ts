import { expect, test } from "bun:test";
import { Unavailable } from "../../src/contract/errors.ts";
import { REQUEST_TIMEOUT_MS, withTimeout } from "../../src/http/request-timeout.ts";

const never = () => new Promise<string>(() => {});

test("a response has 7 seconds", () => {
  expect(REQUEST_TIMEOUT_MS).toBe(7_000);
});

test("work that finishes in time settles as it does", async () => {
  expect(await withTimeout(Promise.resolve("done"), 1_000)).toBe("done");
  await expect(withTimeout(Promise.reject(new Error("own")), 1_000)).rejects.toThrow("own");
});

test("work that never finishes rejects with Unavailable when its time is over", async () => {
  const started = performance.now();
  await expect(withTimeout(never(), 20)).rejects.toBeInstanceOf(Unavailable);
  expect(performance.now() - started).toBeGreaterThanOrEqual(19);
});

test("when one request times out, those that began later go on", async () => {
  const late = Promise.withResolvers<string>();
  const oldest = withTimeout(never(), 20);
  const younger = withTimeout(late.promise, 10_000);
  await expect(oldest).rejects.toBeInstanceOf(Unavailable);
  late.resolve("in time");
  expect(await younger).toBe("in time");
});
