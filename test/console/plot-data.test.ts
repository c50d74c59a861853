import { describe, expect, test } from "bun:test";
import {
  ceilingOf,
  drawnValues,
  gapsOf,
  type PlotProps,
  runsOf,
} from "../../src/console/components/plot-data.ts";

type Values = readonly (number | null)[];

function plotOf(...all: readonly Values[]): PlotProps {
  const [first = []] = all;
  return {
    title: "Requests per second",
    kind: "stacked",
    times: first.map((_, i) => i * 5),
    series: all.map((values, i) => ({ label: `${i}`, tone: "series", symbol: "●", values })),
    axisValue: String,
    value: String,
    group: "test",
    pointUrl: () => "",
    noDataText: "before the start",
  };
}

const steady = (length: number, value: number | null = 100) => Array.from({ length }, () => value);

test("runs of points", () => {
  expect(runsOf(8, (i) => [0, 1, 4, 6, 7].includes(i))).toEqual([
    { first: 0, last: 1 },
    { first: 4, last: 4 },
    { first: 6, last: 7 },
  ]);
});

describe("gaps", () => {
  test("what no series knows is a gap, at the start and later, and zero is none", () => {
    const values = [...steady(20, null), ...steady(30, 0), ...steady(3, null), ...steady(47)];
    expect(gapsOf(plotOf(values, values))).toEqual([
      { first: 0, last: 19 },
      { first: 50, last: 52 },
    ]);
  });

  test("the latest point may be late, and one of 100 at the start is not seen", () => {
    expect(gapsOf(plotOf([null, ...steady(98), null]))).toEqual([]);
    expect(gapsOf(plotOf([...steady(98), null, null]))).toEqual([{ first: 98, last: 99 }]);
  });

  test("without requests a latency has no value, which is no gap", () => {
    const latency = plotOf(steady(100, null));
    expect(gapsOf(latency)).toEqual([{ first: 0, last: 99 }]);
    expect(gapsOf({ ...latency, isUnknown: () => false })).toEqual([]);
  });
});

describe("the ceiling of the axis", () => {
  test("a burst of ten seconds in a quarter of an hour does not set it", () => {
    const values = steady(180).with(90, 3_000).with(91, 2_000);
    expect(ceilingOf(plotOf(values), 3_000)).toBe(125);
    // Series are added up.
    expect(ceilingOf(plotOf(values, steady(180)), 3_100)).toBe(250);
  });

  test("what is high for longer, hardly higher, or all there is, sets it", () => {
    const longer = steady(180).fill(3_000, 90, 96);
    expect(ceilingOf(plotOf(longer), 3_000)).toBe(3_000);
    expect(ceilingOf(plotOf(steady(180).with(90, 300)), 300)).toBe(300);
    expect(ceilingOf(plotOf(steady(180, 0).with(90, 300)), 300)).toBe(300);
    expect(ceilingOf({ ...plotOf(steady(180).with(90, 3_000)), kind: "lines" }, 3_000)).toBe(3_000);
  });
});

describe("what is drawn", () => {
  const widthOf = (values: Values, least: number) => values.filter((value) => (value ?? 0) >= least).length;

  test("a burst of one minute in a day is at least three pixels wide, in its own parts", () => {
    const [success, limited] = [steady(1_440).with(700, 1_000), steady(1_440, 0).with(700, 500)];
    const [drawn = [], sum = []] = drawnValues(plotOf(success, limited), 400);
    const pixels = 400 / 1_440;
    expect(widthOf(drawn, 1_000) * pixels).toBeGreaterThanOrEqual(3);
    expect(widthOf(sum, 1_500)).toBe(widthOf(drawn, 1_000));
    expect(Math.max(...sum.map(Number))).toBe(1_500);
  });

  test("what is no burst is drawn as it is, and so is a burst of several pixels", () => {
    const waves = Array.from({ length: 1_440 }, (_, i) => 100 + (i % 50));
    expect(drawnValues(plotOf(waves), 400)).toEqual([waves]);
    const burst = steady(180).with(90, 3_000);
    expect(drawnValues(plotOf(burst), 900)).toEqual([burst]);
  });

  test("a burst next to a gap leaves the gap", () => {
    const values = steady(1_440).with(700, 1_000).fill(null, 701, 720);
    const [drawn = []] = drawnValues(plotOf(values), 400);
    expect(drawn.slice(701, 720)).toEqual(steady(19, null));
  });
});
