import { describe, expect, test } from "bun:test";
import {
  ceilingOf,
  drawnValues,
  gapsOf,
  greatestOf,
  lastWithData,
  marksAt,
  partUrl,
  plotHint,
  type PlotProps,
  pointText,
  runsOf,
  stepOf,
  totalsOf,
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

test("the points of a plot: the last with data, the greatest, the sums, and those without any", () => {
  const props = plotOf([1, null, 3, null], [2, 5, null, null]);
  const dashed: PlotProps = {
    ...props,
    series: props.series.map((each, i) => ({ ...each, isDashed: i === 1 })),
  };
  expect([lastWithData(props), lastWithData(plotOf([null, null])), lastWithData(plotOf([0]))]).toEqual([
    2, -1, 0,
  ]);
  expect([greatestOf(props.series), greatestOf(plotOf([null]).series), greatestOf([])]).toEqual([5, -1, -1]);
  expect([totalsOf(props), totalsOf(dashed), totalsOf({ ...props, kind: "lines" })]).toEqual([
    [3, 5, 3, 0],
    [1, 0, 3, 0],
    [0, 0, 0, 0],
  ]);
  expect([stepOf([10, 15, 30]), stepOf([10]), stepOf([])]).toEqual([5, -10, 0]);
  const texts = [0, null, undefined].map((value) => [
    pointText(value, String),
    pointText(value, String, "none"),
  ]);
  expect(texts).toEqual([
    ["0", "0"],
    ["–", "none"],
    ["–", "none"],
  ]);
});

test("a mark is at the point that ends its step, and the first point has all that was before", () => {
  const shape = { label: "bans", tone: "error", symbol: "▼" } as const;
  const all = [0, 5, 5.1, 10, 11].map((time) => Object.assign({ time, text: `${time}` }, shape));
  const textsAt = (index: number) =>
    marksAt({ ...plotOf([1, 2, 3]), marks: all }, index).map(({ text }) => text);
  expect([textsAt(0), textsAt(1), textsAt(2), textsAt(3)]).toEqual([["0"], ["5"], ["5.1", "10"], []]);
  expect(marksAt(plotOf([1, 2]), 1)).toEqual([]);
});

test("a part of a plot has three points or more, within the plot", () => {
  const zoomUrl = (from: number, until: number) => `${from} to ${until}`;
  const partOf = (values: Values, from: number, until: number) =>
    partUrl({ ...plotOf(values), zoomUrl }, from, until);
  const ten = steady(10);
  expect([
    partOf(ten, 2.9, 6.1),
    partOf(ten, 3, 3),
    partOf(ten, 9, 9),
    partOf(ten, -4, 20),
    partOf([1, 2], 0, 1),
    partOf([1], 0, 0),
    partUrl(plotOf(ten), 2, 6),
  ]).toEqual(["10 to 35", "15 to 25", "35 to 45", "0 to 45", "0 to 5", undefined, undefined]);
  expect([plotHint(plotOf(ten)), plotHint({ ...plotOf(ten), zoomUrl })]).toEqual([
    "Click or Enter: its requests",
    "Click or Enter: its requests. Drag or +: zoom",
  ]);
});

describe("gaps at the start", () => {
  test("of 100 points two are seen", () => {
    expect([gapsOf(plotOf([null, ...steady(49)])), gapsOf(plotOf([null, null, ...steady(98)]))]).toEqual([
      [],
      [],
    ]);
    expect(gapsOf(plotOf([null, null, null, ...steady(97)]))).toEqual([{ first: 0, last: 2 }]);
    expect(gapsOf(plotOf([1, null, ...steady(98)]))).toEqual([{ first: 1, last: 1 }]);
  });
});

test("a burst may have a fortieth of the points, and is three times as high as the others", () => {
  const burst = (points: number, height: number) =>
    ceilingOf(plotOf(steady(80).fill(height, 0, points)), height);
  expect([burst(2, 301), burst(2, 300), burst(3, 301)]).toEqual([125, 300, 301]);
});

describe("what bars and areas draw", () => {
  const bars = (...all: readonly Values[]) => drawnValues({ ...plotOf(...all), kind: "bars" }, 10);

  test("bars are added up, zeros are none, and each part is high enough to be seen", () => {
    expect(bars([99, 0, null], [0, 990, 1])).toEqual([
      [99, null, null],
      [null, 990, 10],
    ]);
  });

  test("a dashed line and lines are drawn as they are", () => {
    const props = plotOf([1, null, 3], [9, 9, 0]);
    const dashed = { ...props, series: props.series.map((each, i) => ({ ...each, isDashed: i === 1 })) };
    expect([drawnValues(dashed, 900), drawnValues({ ...props, kind: "lines" }, 900)]).toEqual([
      [
        [1, null, 3],
        [9, 9, 0],
      ],
      [
        [1, null, 3],
        [9, 9, 0],
      ],
    ]);
  });

  test("an area has zeros beside what is not zero, as far as they are near, and none among zeros", () => {
    const zeroExcept = (at: number) => steady(320, 0).with(at, 5);
    const [drawn = []] = drawnValues(plotOf(zeroExcept(200)), 0);
    const known = drawn.flatMap((value, i) => (value === null ? [] : [i]));
    expect(known).toEqual([197, 198, 199, 200, 201, 202, 203]);
    const [atStart = []] = drawnValues(plotOf(zeroExcept(0)), 0);
    expect(atStart.slice(0, 5)).toEqual([5, 0, 0, 0, null]);
  });

  test("of two bursts that are near the higher one is drawn, and nothing but a burst moves", () => {
    const drawn = (values: Values, width: number) => drawnValues(plotOf(values), width)[0]?.slice(0, 8);
    // Twenty points at each pixel: a burst reaches 40 points to either side.
    const around = (length: number, ...heights: readonly number[]) => [...heights, ...steady(length, 1)];
    expect(drawn(around(1_000, 1, 9, 1, 10), 50)).toEqual([10, 9, 10, 10, 10, 10, 10, 10]);
    expect(drawn(around(1_000, 1, 3), 50)).toEqual([1, 3, 1, 1, 1, 1, 1, 1]);
    // Two points at each pixel reach four, and fewer three.
    expect(drawn(around(1_000, 1, 9), 501)).toEqual([9, 9, 9, 9, 9, 9, 1, 1]);
    expect(drawn(around(1_000, 1, 9), 601)).toEqual([9, 9, 9, 9, 9, 1, 1, 1]);
  });
});
