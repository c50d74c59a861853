import { expect, test } from "bun:test";
import { type Awaitable, type Coroutine, runCoroutine, waitFor } from "../../src/runtime/awaitable.ts";

function* sumOf(values: readonly Awaitable<number>[]): Coroutine<Awaitable<number>> {
  let sum = 0;
  for (const value of values) {
    try {
      sum += value instanceof Promise ? yield* waitFor(value) : value;
    } catch {
      sum += 100;
    }
  }
  return sum;
}

test("a coroutine returns at once if it waits for nothing, and otherwise goes on after each promise", async () => {
  expect(runCoroutine(sumOf([1, 2]))).toBe(3);
  const later = [Promise.resolve(1), 2, Promise.reject(new Error("x")), Promise.resolve(4)];
  expect(await runCoroutine(sumOf(later))).toBe(107);
});
