import { expect, test } from "bun:test";
import { steadyClock } from "../src/clock.ts";

function setUp() {
  const time = { wall: 1_000_000, elapsed: 0 };
  const steps: number[] = [];
  const clock = steadyClock({
    wall: () => time.wall,
    elapsed: () => time.elapsed,
    onStep: (by) => void steps.push(by),
  });
  const pass = (ms: number) => ((time.wall += ms), (time.elapsed += ms));
  return { time, clock, pass, steps };
}

test("the clock tells wall time", () => {
  const { clock, pass } = setUp();
  pass(12_345);
  expect(clock.now()).toBe(1_012_345);
});

for (const step of [86_400_000, -86_400_000, -3_000]) {
  test(`a step of the machine's clock by ${step} ms is reported once and not followed`, () => {
    const { clock, pass, time, steps } = setUp();
    time.wall += step;
    for (let second = 1; second <= 5; second++) {
      pass(1_000);
      expect(clock.now()).toBe(1_000_000 + second * 1_000);
    }
    expect(steps).toEqual([step]);
  });
}

test("drift is taken over gently, and never faster than six milliseconds in a minute", () => {
  const { clock, pass, time } = setUp();
  time.wall += 10;
  for (let minute = 0; minute < 3; minute++) {
    const before = clock.now();
    for (let second = 0; second < 60; second++) {
      pass(1_000);
      clock.now();
    }
    expect(Math.abs(clock.now() - before - 60_000)).toBeLessThanOrEqual(6);
  }
  expect(Math.abs(clock.now() - time.wall)).toBeLessThanOrEqual(1);
});
