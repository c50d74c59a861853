import { expect, test } from "bun:test";
import { createClock } from "../src/clock.ts";

function setUp() {
  const time = { wall: 1_000_000, elapsed: 7_000 };
  const steps: number[] = [];
  const clock = createClock({
    wall: () => time.wall,
    elapsed: () => time.elapsed,
    onStep: (by) => void steps.push(by),
  });
  const pass = (ms: number) => ((time.wall += ms), (time.elapsed += ms));
  return { time, clock, pass, steps };
}

test("both clocks start with the machine's", () => {
  const { clock, pass } = setUp();
  pass(12_345);
  expect([clock.now(), clock.steadyNow(), clock.stepMs]).toEqual([1_012_345, 1_012_345, 0]);
});

for (const step of [86_400_000, -86_400_000, -3_000]) {
  test(`the machine's clock set by ${step} ms: now follows, steadyNow does not, and the step is reported once`, () => {
    const { clock, pass, time, steps } = setUp();
    time.wall += step;
    for (let second = 1; second <= 5; second++) {
      pass(1_000);
      expect(clock.now()).toBe(1_000_000 + step + second * 1_000);
      expect(clock.steadyNow()).toBe(1_000_000 + second * 1_000);
      expect(clock.stepMs).toBe(step);
    }
    expect(steps).toEqual([step]);
  });
}

test("the machine's clock set forward and back: two steps, and in the end none", () => {
  const { clock, pass, time, steps } = setUp();
  for (const step of [86_400_000, -86_400_000]) {
    time.wall += step;
    pass(1_000);
    clock.steadyNow();
  }
  expect(steps).toEqual([86_400_000, -86_400_000]);
  expect([clock.now(), clock.steadyNow(), clock.stepMs]).toEqual([1_002_000, 1_002_000, 0]);
});

test("a difference of two seconds is drift, and a greater one a step", () => {
  for (const by of [2_000, -2_000, 2_001, -2_001]) {
    const { clock, pass, time, steps } = setUp();
    time.wall += by;
    pass(1_000);
    clock.steadyNow();
    expect(steps).toEqual(Math.abs(by) === 2_000 ? [] : [by]);
  }
});

for (const step of [0, 86_400_000]) {
  test(`after a step of ${step} ms, drift is taken over by at most six milliseconds in a minute`, () => {
    const { clock, pass, time } = setUp();
    time.wall += step;
    pass(1_000);
    clock.steadyNow();
    time.wall += 10;
    for (let minute = 0; minute < 3; minute++) {
      const before = clock.steadyNow();
      for (let half = 0; half < 120; half++) {
        pass(500);
        clock.steadyNow();
      }
      expect(Math.abs(clock.steadyNow() - before - 60_000)).toBeLessThanOrEqual(6);
    }
    expect(Math.abs(clock.steadyNow() + clock.stepMs - time.wall)).toBeLessThanOrEqual(1);
  });
}
