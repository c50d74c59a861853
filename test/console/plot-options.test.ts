import { afterAll, beforeAll, expect, test } from "bun:test";
import type { PlotProps } from "../../src/console/components/plot-data.ts";
import { optionsOf } from "../../src/console/components/plot-options.ts";
import { fakeBrowser, fakeElement, fakePlot, plotOf } from "./fake-plot.ts";

let leaveBrowser: () => void;
beforeAll(() => (leaveBrowser = fakeBrowser()));
afterAll(() => leaveBrowser());

/** The options of a plot, and what it tells the page. */
function optionsWith(kind: PlotProps["kind"], own: Partial<PlotProps> = {}) {
  const told: unknown[] = [];
  const props = { ...plotOf(kind, { success: [1, null, 30], limited: [2, 5, 10] }), ...own };
  const current = { ...props, onHover: (index: number | undefined) => void told.push(index) };
  const element = fakeElement({ clientWidth: 400, clientHeight: 100 });
  const options = optionsOf(
    element,
    () => current,
    (from, until) => void told.push([from, until]),
  );
  // uPlot's types have much that these plots do not use.
  return { ...Object(options), told };
}

/** What needs no plot: a colour is what it is called. */
const plain = (options: object): unknown =>
  JSON.parse(
    JSON.stringify(options, (_name, value: unknown) =>
      typeof value === "function" ? (value.length === 0 ? value() : "a function") : value,
    ),
  );

test("a plot has a hidden legend, a shared cursor and two axes, in the colours of the page", () => {
  const { series: _series, ...options } = optionsWith("stacked");
  expect(plain(options)).toEqual({
    width: 400,
    height: 100,
    legend: { show: false },
    cursor: {
      sync: { key: "test", filters: { pub: "a function" } },
      points: {},
      drag: { x: false, y: false, setScale: false },
      y: false,
    },
    scales: { x: { range: "a function" }, y: { range: "a function" } },
    axes: [
      {
        stroke: "var(--text-muted)",
        font: "12px sans",
        grid: { show: false },
        ticks: { stroke: "var(--hairline)", width: 1, size: 4 },
        space: "a function",
        incrs: [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800],
        size: 28,
        values: "a function",
      },
      {
        stroke: "var(--text-muted)",
        font: "12px sans",
        grid: { stroke: "var(--hairline)", width: 1, filter: "a function" },
        ticks: { stroke: "var(--hairline)", width: 1, size: 4, filter: "a function" },
        splits: "a function",
        filter: "a function",
        size: "a function",
        values: "a function",
      },
    ],
    padding: [8, "a function", 0, null],
    hooks: {
      setCursor: ["a function"],
      setSelect: ["a function"],
      drawAxes: ["a function"],
      draw: ["a function"],
    },
    told: [],
  });
});

test("lines are thin, areas are filled, bars are wide, and what is dashed is no area", () => {
  const series = [
    { label: "success", tone: "series", symbol: "●", values: [1] },
    { label: "error", tone: "muted", symbol: "◆", values: [1] },
    { label: "limit", tone: "error", symbol: "–", isDashed: true, values: [1] },
  ] as const;
  const drawn = (label: string, colour: string, more: object = {}) => ({
    label,
    stroke: colour,
    width: 1,
    points: { show: true, size: 4, fill: colour, filter: "a function" },
    spanGaps: false,
    ...more,
  });
  const limit = drawn("limit", "var(--error)", { dash: [4, 3] });
  expect(plain(optionsWith("lines", { series }).series)).toEqual([
    {},
    limit,
    drawn("error", "var(--text-muted)"),
    drawn("success", "var(--series)"),
  ]);
  const errors = "color-mix(in srgb, var(--text-muted) 50%, var(--background))";
  const successes = "color-mix(in srgb, var(--series) 85%, var(--background))";
  expect(plain(optionsWith("stacked", { series }).series)).toEqual([
    {},
    limit,
    drawn("error", "var(--text-muted)", { stroke: errors, fill: errors }),
    drawn("success", "var(--series)", { stroke: successes, fill: successes }),
  ]);
  const bar = { width: 0, points: { show: false }, paths: "a function" };
  expect(plain(optionsWith("bars", { series }).series)).toEqual([
    {},
    limit,
    drawn("error", "var(--text-muted)", { ...bar, fill: errors }),
    drawn("success", "var(--series)", { ...bar, fill: successes }),
  ]);
});

test("only a plot with parts is dragged, bars have no points, and a selection stays in its plot", () => {
  const { cursor } = optionsWith("bars", { zoomUrl: () => "" });
  expect(plain(cursor)).toEqual({
    sync: { key: "test", filters: { pub: "a function" } },
    points: { show: false },
    drag: { x: true, y: false, setScale: false },
    y: false,
  });
  const isShared = cursor.sync.filters.pub;
  expect(["mousemove", "mousedown", "mouseup"].map(isShared)).toEqual([true, false, false]);
});

test("the axis of times has steps of the clock, or days in UTC, and room for its texts", () => {
  const {
    axes: [clock],
  } = optionsWith("lines");
  const {
    axes: [days],
    tzDate,
  } = optionsWith("bars", { isByDay: true });
  const spaces = (axis: typeof clock) => [axis.space(null, 0, 0, 599), axis.space(null, 0, 10, 610)];
  expect([spaces(clock), spaces(days)]).toEqual([
    [72, 50],
    [72, 56],
  ]);
  expect([clock.incrs.length, days.incrs]).toEqual([17, undefined]);
  const noon = Date.UTC(2026, 10, 18, 12) / 1_000;
  expect([clock.values(null, [noon, noon + 60])[1].length, days.values(null, [noon])]).toEqual([
    5,
    ["18 Nov"],
  ]);
  expect([tzDate(noon - 50_000).getHours(), tzDate(noon).getDate(), optionsWith("lines").tzDate]).toEqual([
    22,
    18,
    undefined,
  ]);
});

test("times go from the first to the last, and have half a step more for bars", () => {
  expect(optionsWith("lines").scales.x.range(null, 3, 9)).toEqual([3, 9]);
  expect(optionsWith("bars").scales.x.range(null, 3, 9)).toEqual([-5, 25]);
});

test("the axis of values goes from zero, or has powers of ten, and its texts have room", () => {
  const {
    axes: [, values],
    scales,
  } = optionsWith("stacked", { isCount: true });
  expect([scales.y.range(null, 3, 7), scales.y.range(null, 0, 0)]).toEqual([
    [0, 8],
    [0, 2],
  ]);
  expect(optionsWith("stacked").scales.y.range(null, 0, 4.8)).toEqual([0, 6]);
  expect(optionsWith("stacked").scales.y.range(null, 0, 0.28)[1]).toBeCloseTo(0.3);
  expect(values.splits(null, 1, 0, 10)).toEqual([0, 5, 10]);
  expect(values.filter(null, [0, 5, 10])).toEqual([0, 5, 10]);
  expect([values.size(null, ["1", "1,000", "10"]), values.size(null, null)]).toEqual([12 + 5 * 7.5, 12]);
  expect(values.values(null, [1, null, 0])).toEqual(["1/s", "", "0/s"]);
  const log = optionsWith("lines", { isLog: true });
  expect([log.scales.y.distr, log.scales.y.range(null, 3, 70), log.axes[1].splits(null, 1, 1, 100)]).toEqual([
    3,
    [1, 100],
    [1, 10, 100],
  ]);
});

test("the right side has room for names if there are any", () => {
  const [top, right, bottom, left] = optionsWith("lines").padding;
  expect([
    top,
    right(fakePlot({ width: 400 }).plot),
    right(fakePlot({ width: 300 }).plot),
    bottom,
    left,
  ]).toEqual([8, 57, 16, 0, null]);
});

test("a point between gaps is drawn as a point", () => {
  const { filter } = optionsWith("lines").series[1].points;
  const isolated = (values: readonly (number | null | undefined)[]) => filter({ data: [[], values] }, 1);
  expect([
    isolated([1, null, 2, 3, null, 4]),
    isolated([null, 1, undefined]),
    isolated([1, 2]),
    isolated([]),
  ]).toEqual([[0, 5], [1], [], []]);
  expect(filter({ data: [] }, 1)).toEqual([]);
});

test("the cursor is told, and its line is at the point, or around the bar", () => {
  const lineOf = (kind: PlotProps["kind"], idx: number | null) => {
    const { hooks, told } = optionsWith(kind);
    const { plot, over } = fakePlot({ cursor: { idx } });
    over.isHere = false;
    const line = Object.assign(fakeElement({}), { className: "u-cursor-x" });
    over.append(Object(line));
    hooks.setCursor[0](plot);
    hooks.setCursor[0](fakePlot({ cursor: { idx } }).plot);
    return [`${line}`, ...told];
  };
  expect([lineOf("lines", 2), lineOf("bars", 2), lineOf("bars", null)]).toEqual([
    ["area.u-cursor-x transform=translate(40px) width=1px opacity=0.5 ()", 2, 2],
    ["area.u-cursor-x transform=translate(30px) width=20px opacity=0.15 ()", 2, 2],
    ["area.u-cursor-x transform=translate(-10px) width=20px opacity=0.15 ()", undefined, undefined],
  ]);
});

test("what is selected is told and selected no more", () => {
  const { hooks, told } = optionsWith("lines");
  const select = (left: number, width: number) =>
    hooks.setSelect[0]({
      select: { left, width },
      posToIdx: (position: number) => position / 10,
      setSelect: (...values: unknown[]) => told.push(values),
    });
  select(20, 30);
  select(20, 0);
  const nothing = [{ left: 0, top: 0, width: 0, height: 0 }, false];
  expect(told).toEqual([[2, 5], nothing, nothing]);
});

test("what is drawn besides the series depends on the kind", () => {
  const drawnWith = (kind: PlotProps["kind"]) => {
    const { plot, drawn, over } = fakePlot({ scales: { y: { max: 5 } }, width: 500 });
    const { hooks } = optionsWith(kind, {
      marks: [{ time: 10, label: "bans", tone: "error", symbol: "▼", text: "" }],
    });
    hooks.drawAxes[0](plot);
    hooks.draw[0](plot);
    return [
      ...drawn.filter((each) => /^(?:save|fillText|fillStyle)/.test(each)),
      ...over.children.map(String),
    ];
  };
  expect({ lines: drawnWith("lines"), stacked: drawnWith("stacked"), bars: drawnWith("bars") }).toEqual({
    lines: [
      "save",
      "save",
      "fillStyle = var(--error)",
      "fillText ▼ 140 10",
      "span.series-name.tone-muted left=46px top=90px (limited)",
      "span.series-name.tone-muted left=46px top=70px (success)",
    ],
    stacked: [
      "save",
      "save",
      "fillStyle = var(--text)",
      "fillText ↑ 40 a second 192 14",
      "save",
      "fillStyle = var(--error)",
      "fillText ▼ 140 10",
      "span.series-name.tone-muted left=46px top=85px (success)",
      "span.series-name.tone-muted left=46px top=65px (limited)",
    ],
    bars: [
      "save",
      "save",
      "fillStyle = color-mix(in srgb, var(--background) 25%, transparent)",
      "save",
      "fillStyle = var(--error)",
      "fillText ▼ 140 10",
      "span.series-name.tone-muted left=56px top=85px (success)",
      "span.series-name.tone-muted left=56px top=65px (limited)",
    ],
  });
});
