import { expect, test } from "bun:test";
import {
  decades,
  measured,
  powersOfTen,
  rangeOfBars,
  TIME_STEPS,
  topOf,
} from "../../src/console/components/plot-axes.ts";
import { plotOf } from "./fake-plot.ts";

test("the end of an axis is a little above the values, and half of it is round", () => {
  expect([0, 0.3, 0.98, 0.99, 1, 5, 7, 9.9, 10, 98, 99, 118, 1_190].map((max) => topOf(max, false))).toEqual([
    1, 0.4, 1, 1.2000000000000002, 1.2, 6, 8, 12, 12, 100, 120, 160, 1600,
  ]);
  expect([0, 1, 3, 5, 7, 9, 15, 99].map((max) => topOf(max, true))).toEqual([2, 2, 4, 6, 8, 10, 16, 120]);
});

test("a logarithmic axis has whole powers of ten, one of them at least", () => {
  expect([decades(3, 70), decades(1, 1), decades(0.2, 1_000), decades(null, null), decades(0, 0)]).toEqual([
    [1, 100],
    [1, 10],
    [0.1, 1000],
    [0.1, 1],
    [0.1, 1],
  ]);
  expect([powersOfTen(Object(), 0, 0.001, 10), powersOfTen(Object(), 0, 1, 1)]).toEqual([
    [0.001, 0.01, 0.1, 1, 10],
    [1],
  ]);
});

test("bars have as much room at both ends as between them", () => {
  expect([rangeOfBars([10, 20, 30]), rangeOfBars([])]).toEqual([
    [5, 35],
    [0, 0],
  ]);
});

test("zeros have a zero at their axis, and what has no data has no scale", () => {
  const splitsOf = (...values: readonly (number | null)[]) =>
    measured([0, 1, 2], plotOf("lines", { values }));
  expect([splitsOf(0, 1), splitsOf(0, null), splitsOf(null)]).toEqual([
    [0, 1, 2],
    [0, null, null],
    [null, null, null],
  ]);
});

test("the steps of the axis of times divide a minute, an hour or a day", () => {
  const units = [60, 3_600, 86_400, 172_800];
  expect(TIME_STEPS.filter((step) => !units.some((unit) => unit % step === 0))).toEqual([]);
  expect(TIME_STEPS).toEqual(TIME_STEPS.toSorted((a, b) => a - b));
});
