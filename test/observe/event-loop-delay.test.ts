import { expect, jest, test } from "bun:test";
import { EventLoopDelay } from "../../src/observe/request-metrics.ts";

/** Samples after each of the given times, in milliseconds. */
function sampled(...intervals: number[]): EventLoopDelay {
  let now = 0;
  const delay = new EventLoopDelay(() => now);
  for (const ms of intervals) {
    now += ms;
    delay.sample();
  }
  return delay;
}

test("a timer that fires on time, or early after a delay, has no delay", () => {
  const { seconds, longestSeconds } = sampled(20, 20, 19);
  expect([seconds.counts[0], seconds.sum, longestSeconds]).toEqual([3, 0, 0]);
});

test("a process that was busy for 500 ms has that delay", () => {
  const { seconds, longestSeconds } = sampled(20, 520, 20);
  expect(longestSeconds).toBe(0.5);
  expect(seconds.sum).toBe(0.5);
  expect([...seconds.counts]).toEqual([2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
});

test("the longest delay is forgotten after a minute, and not before half a minute", () => {
  const quiet = (ms: number) => Array.from({ length: ms / 20 }, () => 20);
  expect(sampled(520, ...quiet(30_000)).longestSeconds).toBe(0.5);
  expect(sampled(520, ...quiet(60_000)).longestSeconds).toBe(0);
});

test("it samples every 20 ms while it runs", () => {
  jest.useFakeTimers();
  const delay = new EventLoopDelay();
  delay.start();
  jest.advanceTimersByTime(100);
  delay.stop();
  jest.advanceTimersByTime(100);
  jest.useRealTimers();
  expect(delay.seconds.counts.reduce((sum, count) => sum + count, 0)).toBe(5);
});
