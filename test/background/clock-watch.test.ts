import { expect, onTestFinished, test } from "bun:test";
import { ClockWatch } from "../../src/background/clock-watch.ts";
import { createLog } from "../../src/observe/log.ts";
import { advance, settle, useFakeTimers } from "../fake-timers.ts";
import { TestClock } from "../test-clock.ts";

useFakeTimers();

/** The clock of the database shows the time of the test clock before it was set. */
function compare(readTime: (clock: TestClock) => number | undefined | Promise<number>) {
  const clock = new TestClock();
  const lines: string[] = [];
  const log = createLog({ format: "json", write: (line) => lines.push(line) });
  const comparison = new ClockWatch({
    storedValues: { readTime: () => readTime(clock) },
    clock,
    log,
  });
  onTestFinished(() => comparison.close());
  return {
    clock,
    comparison,
    events: () =>
      lines.splice(0).map((line) => {
        const { level, event, aheadMs, byMs } = JSON.parse(line);
        return `${level} ${event} ${aheadMs ?? byMs}`;
      }),
  };
}

test("a clock that differs is one event until it agrees again, and known within five seconds", async () => {
  const { clock, comparison, events } = compare(({ time }) => time);
  await advance(0);
  expect([comparison.aheadMs, events()]).toEqual([0, []]);
  clock.step(-3_600_000);
  await advance(5_000);
  expect([comparison.aheadMs, events()]).toEqual([-3_600_000, ["warn clock.differs -3600000"]]);
  clock.step(3_602_000);
  await advance(5_000);
  expect([comparison.aheadMs, events()]).toEqual([2_000, []]);
  clock.step(-1_000);
  await advance(5_000);
  expect([comparison.aheadMs, events()]).toEqual([1_000, ["info clock.agrees 1000"]]);
  clock.step(1_000);
  await advance(5_000);
  expect([comparison.aheadMs, events()]).toEqual([2_000, []]);
  clock.step(1);
  await advance(5_000);
  expect([comparison.aheadMs, events()]).toEqual([2_001, ["warn clock.differs 2001"]]);
});

test("a step of the database's clock is an event, and neither a step nor a pause of this machine is one", async () => {
  let byMs = 0;
  const { clock, events } = compare(({ time }) => time + byMs);
  await advance(0);
  byMs = -60_000;
  await advance(5_000);
  expect(events()).toEqual(["warn clock.database-changed -60000", "warn clock.differs 60000"]);
  byMs = 1_000;
  await advance(5_000);
  expect(events()).toEqual(["warn clock.database-changed 61000", "info clock.agrees -1000"]);
  byMs = -1_000;
  await advance(5_000);
  // As if the machine had been suspended for an hour: its monotonic clock stood still.
  byMs += 3_600_000;
  clock.step(3_600_000);
  await advance(5_000);
  expect(events()).toEqual([]);
});

test("half of the time of the query counts, and a slow query, an outage and a database without a clock say nothing", async () => {
  let answer: (clock: TestClock) => number | undefined | Promise<number> = (clock) => {
    clock.advance(400);
    return clock.time - 200;
  };
  const { comparison, events } = compare((clock) => answer(clock));
  await advance(0);
  expect(comparison.aheadMs).toBe(0);
  answer = (clock) => {
    clock.advance(1_001);
    return clock.time - 9_000;
  };
  await advance(5_000);
  answer = () => Promise.reject(new Error("the database is down"));
  await advance(5_000);
  answer = () => undefined;
  await advance(5_000);
  await settle();
  expect([comparison.aheadMs, events()]).toEqual([0, []]);
});
