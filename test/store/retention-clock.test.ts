import { beforeEach, expect, test } from "bun:test";
import { RetentionClock } from "../../src/store/retention-clock.ts";
import { advance, settle, useFakeTimers } from "../fake-timers.ts";
import { TestClock } from "../test-clock.ts";

useFakeTimers();

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let clock: TestClock;
beforeEach(() => void (clock = new TestClock()));

/** A server of this clock, on stored values that outlive it. */
async function startServer(
  stored: Record<string, string> = {},
  saveValues = async (values: object) => void Object.assign(stored, values),
  readTime: () => number | undefined | Promise<number> = () => undefined,
) {
  const events: string[] = [];
  const onDoubt = () => void events.push("doubted");
  const retention = new RetentionClock(clock, onDoubt, () => void events.push("trusted"));
  expect(retention.now()).toBe(clock.now());
  await retention.start({ readValues: () => stored, saveValues, readTime });
  const pass = async (hours: number) => {
    for (let hour = 0; hour < hours; hour++) {
      clock.advance(HOUR_MS);
      await retention.check();
    }
  };
  return { retention, events, stored, pass };
}

test("a clock that is set forward by 500 days for 70 s makes nothing older, and warns once", async () => {
  const { retention, events } = await startServer();
  clock.step(500 * DAY_MS);
  expect(retention.now()).toBe(clock.steadyNow());
  await retention.check();
  clock.advance(70_000);
  await retention.check();
  expect(retention.now()).toBe(clock.steadyNow());
  clock.step(-500 * DAY_MS);
  expect(retention.now()).toBe(clock.now());
  await retention.check();
  expect(events).toEqual(["doubted", "trusted"]);
  await retention.stop();
});

test.each([
  ["by less than a day", DAY_MS, []],
  ["back, which deletes less,", -500 * DAY_MS, ["doubted"]],
])("a clock that is set %s is followed at once", async (_, byMs, expected) => {
  const { retention, events } = await startServer();
  clock.step(byMs);
  expect(retention.now()).toBe(clock.now());
  await retention.check();
  expect(retention.now()).toBe(clock.now());
  expect(events).toEqual(expected);
  await retention.stop();
});

test("a server that was off for months deletes nothing for a day, then trusts its clock, across restarts", async () => {
  const { retention, stored } = await startServer();
  await retention.stop();
  const stoppedAt = clock.now();

  clock.advance(90 * DAY_MS);
  const second = await startServer(stored);
  expect(second.retention.now()).toBe(stoppedAt);
  await second.pass(12);
  expect(second.retention.now()).toBe(stoppedAt + 12 * HOUR_MS);
  expect(second.events).toEqual(["doubted"]);
  await second.retention.stop();

  clock.advance(HOUR_MS);
  const third = await startServer(stored);
  await third.pass(11);
  expect(third.retention.now()).toBeLessThan(clock.now() - 80 * DAY_MS);
  await third.pass(1);
  expect(third.retention.now()).toBe(clock.now());
  expect(third.events).toEqual(["doubted", "trusted"]);
  await third.retention.stop();
});

test("a clock that differs now by this and now by that is not trusted after a day", async () => {
  const { retention, pass } = await startServer();
  const startedAt = clock.now();
  clock.step(10 * DAY_MS);
  await pass(13);
  clock.step(10 * DAY_MS);
  await pass(13);
  expect(retention.now()).toBe(startedAt + 26 * HOUR_MS);
  await retention.stop();
});

test("a clock that was right meanwhile is doubted for a whole day again", async () => {
  const { retention, pass } = await startServer();
  clock.step(10 * DAY_MS);
  await pass(20);
  clock.step(-10 * DAY_MS);
  await pass(1);
  clock.step(10 * DAY_MS);
  await pass(20);
  expect(retention.now()).toBe(clock.now() - 10 * DAY_MS);
  await retention.stop();
});

test("without stored values, which cannot be written, the clock of this server still decides", async () => {
  const { retention } = await startServer({}, () => Promise.reject(new Error("disk full")));
  clock.step(500 * DAY_MS);
  expect(retention.now()).toBe(clock.steadyNow());
  await retention.stop();
});

test("a clock that is trusted is bounded by the clock of the database, whose time is read at each check", async () => {
  const database = { aheadMs: -5 * DAY_MS };
  const readTime = async () => {
    await settle();
    return clock.steadyNow() + database.aheadMs;
  };
  const { retention, events, pass } = await startServer({}, async () => {}, readTime);
  expect(events).toEqual([]);
  expect(retention.now()).toBe(clock.now() - 5 * DAY_MS);
  clock.advance(HOUR_MS);
  expect(retention.now()).toBe(clock.now() - 5 * DAY_MS);
  await pass(25);
  expect(retention.now()).toBe(clock.now() - 5 * DAY_MS);
  database.aheadMs = -HOUR_MS;
  await retention.check();
  expect(retention.now()).toBe(clock.now() - HOUR_MS);
  database.aheadMs = 5 * DAY_MS;
  await retention.check();
  expect(retention.now()).toBe(clock.now());
  await retention.stop();
});

test("in an outage of the database its time continues", async () => {
  let isAvailable = true;
  const readTime = () => {
    if (!isAvailable) throw new Error("unavailable");
    return clock.steadyNow() - 5 * DAY_MS;
  };
  const { retention, pass } = await startServer({}, async () => {}, readTime);
  isAvailable = false;
  await pass(30);
  expect(retention.now()).toBe(clock.now() - 5 * DAY_MS);
  await retention.stop();
});

test("the times are stored at the start, every ten minutes and at the end", async () => {
  const saved: object[] = [];
  const { retention } = await startServer({}, async (values) => void saved.push(values));
  const startedAt = clock.now();
  const trusted = { "clock-trusted-at": `${startedAt}`, "clock-doubted-at": "0", "clock-doubted-for": "0" };
  await settle();
  expect(saved).toEqual([trusted]);
  clock.step(500 * DAY_MS);
  const doubted = { ...trusted, "clock-doubted-at": `${clock.now()}` };
  await advance(599_999);
  expect(saved).toHaveLength(1);
  await advance(1);
  expect(saved).toEqual([trusted, doubted]);
  clock.advance(7);
  const later = { ...doubted, "clock-doubted-at": `${clock.now()}`, "clock-doubted-for": "7" };
  await retention.stop();
  await advance(600_000);
  expect(saved).toEqual([trusted, doubted, later]);
});
