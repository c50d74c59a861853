import { expect, test } from "bun:test";
import { newQuota, type Quota } from "../../src/domain/rate-limit.ts";
import { KnownQuotas } from "../../src/rate-limit/known-quotas.ts";

const FREE = { perMinute: 60, perDay: 1_000 };
const NOW = 1_000_000;
const CLOCK = { steadyNow: () => NOW, stepMs: 0 };

function used(count: number, openedAt = NOW): Quota {
  const window = { openedAt, used: count, graceBeganAt: -1, strikes: 0 };
  return { ...newQuota(), minute: { ...window }, day: { ...window } };
}

function learn(known: KnownQuotas, id: number, count: number, handOver = known.handOverFor(id)): void {
  known.learn(id, used(count), handOver, NOW);
}

test("50,000 keys are known; the oldest is forgotten first", () => {
  const known = new KnownQuotas(CLOCK);
  for (let id = 0; id <= 50_000; id++) learn(known, id, 50);
  expect(known.size).toBe(50_000);
  expect(known.peek(1, FREE)).toMatchObject({ remaining: 10 });
  expect(known.peek(0, FREE)).toMatchObject({ remaining: 60 });
});

test("whoever takes over is told once, and again after the next change", () => {
  const known = new KnownQuotas(CLOCK);
  learn(known, 1, 5);
  expect(known.handOverFor(1).quota).toBeUndefined();
  for (const period of [1, 2]) {
    known.beginPeriod();
    expect(known.handOverFor(1)).toMatchObject({ period, quota: { minute: { used: 5 } } });
    learn(known, 1, 5);
    expect(known.handOverFor(1).quota).toBeUndefined();
  }
});

test("a reply of the counter before, which comes late, is handed over; replies that crossed it lose nothing", () => {
  const known = new KnownQuotas(CLOCK);
  learn(known, 1, 5);
  const late = known.handOverFor(1);
  known.beginPeriod();
  const [first, second] = [known.handOverFor(1), known.handOverFor(1)];
  learn(known, 1, 9, late);
  learn(known, 1, 6, first);
  expect(known.handOverFor(1).quota).toMatchObject({ minute: { used: 9 } });
  learn(known, 1, 7, second);
  expect(known.handOverFor(1).quota).toMatchObject({ minute: { used: 9 } });
  learn(known, 1, 10);
  expect(known.handOverFor(1).quota).toBeUndefined();
  expect(known.peek(1, FREE)).toMatchObject({ remaining: 50 });
});

test("a key that is in use stays known, however early it was first seen", () => {
  const known = new KnownQuotas(CLOCK);
  for (let id = 0; id < 50_000; id++) learn(known, id, 50);
  learn(known, 0, 51);
  learn(known, 50_000, 50);
  expect(known.peek(0, FREE)).toMatchObject({ remaining: 9 });
  expect(known.peek(1, FREE)).toMatchObject({ remaining: 60 });
});
