import { afterAll, beforeAll, expect, test } from "bun:test";
import { localTime } from "../../src/pages/format.ts";
import type { Mark, PlotProps } from "../../src/console/components/plot-data.ts";
import {
  drawMarks,
  explainNothing,
  hasNames,
  lightenLast,
  nameCutOff,
  nameWidth,
  showNames,
  showValues,
} from "../../src/console/components/plot-drawing.ts";
import { colour, fakeBrowser, fakePlot, plotOf } from "./fake-plot.ts";

let leaveBrowser: () => void;
beforeAll(() => (leaveBrowser = fakeBrowser()));
afterAll(() => leaveBrowser());

function explained(props: PlotProps): readonly string[] {
  const { plot, drawn } = fakePlot();
  explainNothing(plot, props, colour);
  return drawn;
}

/** The ends of what is hatched, and the texts with their places. */
const shown = (props: PlotProps) => explained(props).filter((each) => /^(?:rect|fillText)/.test(each));
const values = (text: string) => [...text].map((each) => (each === "." ? null : Number(each)));

test("what is unknown is hatched with lines 16 pixels apart, within its part", () => {
  expect(explained(plotOf("lines", { a: values("55..5555555") }))).toEqual([
    "save",
    "font = 24px system-ui, sans-serif",
    "textAlign = center",
    "save",
    "beginPath",
    "rect 160 10 80 40",
    "clip",
    "fillStyle = var(--surface)",
    "fillRect 160 10 80 40",
    "strokeStyle = var(--hairline)",
    "lineWidth = 2",
    "beginPath",
    "moveTo 112 50",
    "lineTo 152 10",
    "moveTo 128 50",
    "lineTo 168 10",
    "moveTo 144 50",
    "lineTo 184 10",
    "moveTo 160 50",
    "lineTo 200 10",
    "moveTo 176 50",
    "lineTo 216 10",
    "moveTo 192 50",
    "lineTo 232 10",
    "moveTo 208 50",
    "lineTo 248 10",
    "moveTo 224 50",
    "lineTo 264 10",
    "stroke",
    "restore",
    "fillStyle = var(--text-muted)",
    "fillText no data 200 30",
    "restore",
  ]);
});

test("a gap says no data, one at the start why, one without room nothing, and zeros are named", () => {
  expect({
    start: shown(plotOf("lines", { a: values(".....555555") })),
    end: shown(plotOf("lines", { a: values("55555......") })),
    all: shown(plotOf("lines", { a: values("...........") })),
    narrow: shown(plotOf("lines", { a: values("555.5555555") })),
    zeros: shown(plotOf("lines", { a: values("00000000000") })),
    unknownAndZeros: shown(plotOf("lines", { a: values("...00000000") })),
    known: shown(plotOf("lines", { a: values("00000000001") })),
  }).toEqual({
    start: ["rect 100 10 180 40", "fillText before the start 190 30"],
    end: ["rect 280 10 220 40", "fillText no data 390 30"],
    all: ["rect 100 10 400 40", "fillText no data 300 30"],
    narrow: ["rect 200 10 40 40"],
    zeros: ["fillText none 300 30"],
    unknownAndZeros: ["rect 100 10 100 40", "fillText none 350 30"],
    known: [],
  });
});

test("values of which some servers know nothing are hatched and named at the top", () => {
  const props = plotOf("lines", { a: values("5555555555555") });
  const until = (time: number, text = "without web-2") =>
    shown({ ...props, incomplete: { until: time, text } });
  expect([until(40), until(20, "8 digits"), until(20, "9 letters"), until(0), until(500)]).toEqual([
    ["rect 100 10 160 40", "fillText without web-2 180 42"],
    ["rect 100 10 80 40", "fillText 8 digits 140 42"],
    ["rect 100 10 80 40"],
    [],
    ["rect 100 10 400 40", "fillText without web-2 300 42"],
  ]);
  const after = { ...plotOf("lines", { a: values("...55555555") }), incomplete: { until: 60, text: "x" } };
  expect([shown(after), shown({ ...after, incomplete: { until: 20, text: "x" } })]).toEqual([
    ["rect 100 10 100 40", "rect 200 10 140 40", "fillText x 270 42"],
    ["rect 100 10 100 40"],
  ]);
});

function cutOff(text: string, scales: object = { y: { max: 5 } }): readonly string[] {
  const { plot, drawn } = fakePlot({ scales });
  nameCutOff(plot, plotOf("stacked", { a: values(text), b: values(text) }), colour);
  return drawn;
}

test("a burst above the axis is named beside its end, before it at the edge, and left out where two overlap", () => {
  expect(cutOff("11911111111")).toEqual([
    "save",
    "font = 22px system-ui, sans-serif",
    "textAlign = left",
    "textBaseline = top",
    "fillStyle = var(--text)",
    "fillText ↑ 18 a second 192 14",
    "restore",
  ]);
  const texts = (text: string, scales?: object) =>
    cutOff(text, scales).filter((each) => each.startsWith("fillText"));
  expect({
    "the greatest of a burst": texts("117.9711111"),
    "the last with room": texts("11111191111"),
    "the first without room": texts("11111119111"),
    "a burst at the edge": texts("11111111799"),
    "two with room": texts("19111911111"),
    "two without room": texts("19119111111"),
    "none above the axis": texts("222.2222222"),
    "no axis": texts("99999999999", {}),
  }).toEqual({
    "the greatest of a burst": ["fillText ↑ 14 a second 192 14"],
    "the last with room": ["fillText ↑ 18 a second 352 14"],
    "the first without room": ["fillText ↑ 18 a second 238 14"],
    "a burst at the edge": ["fillText ↑ 18 a second 278 14"],
    "two with room": ["fillText ↑ 18 a second 152 14", "fillText ↑ 18 a second 312 14"],
    "two without room": ["fillText ↑ 18 a second 152 14"],
    "none above the axis": [],
    "no axis": [],
  });
});

test("the last bar is lighter, also if it is the only one", () => {
  const { plot, drawn } = fakePlot();
  for (const text of ["12345", "1"]) lightenLast(plot, plotOf("bars", { a: values(text) }), colour);
  expect(drawn).toEqual([
    "save",
    "fillStyle = color-mix(in srgb, var(--background) 25%, transparent)",
    "fillRect 240 10 260 40",
    "restore",
    "save",
    "fillStyle = color-mix(in srgb, var(--background) 25%, transparent)",
    "fillRect 100 10 400 40",
    "restore",
  ]);
});

const markAt = (time: number, symbol: string): Mark => ({
  time,
  symbol,
  label: "bans",
  tone: "error",
  text: `${symbol} text`,
});

test("marks have lines of dashes, and symbols that make room for later ones", () => {
  const { plot, drawn } = fakePlot();
  const marks = [
    markAt(20, "a"),
    markAt(21, "b"),
    markAt(60, "c"),
    markAt(22, "d"),
    markAt(-1, "e"),
    markAt(101, "f"),
  ];
  const muted: Mark = { ...markAt(100, "g"), tone: "muted" };
  drawMarks(
    plot,
    { ...plotOf("lines", { a: values("12345") }), marks: [...marks, muted, markAt(0, "h")] },
    colour,
  );
  expect(drawn).toEqual([
    "save",
    "font = 20px system-ui, sans-serif",
    "textAlign = center",
    "fillStyle = var(--text-muted)",
    "fillText g 500 10",
    "globalAlpha = 0.5",
    "fillRect 500 10 2 6",
    "fillRect 500 22 2 6",
    "fillRect 500 34 2 6",
    "fillRect 500 46 2 6",
    "globalAlpha = 1",
    "fillStyle = var(--error)",
    "fillText c 340 10",
    "globalAlpha = 0.5",
    "fillRect 340 10 2 6",
    "fillRect 340 22 2 6",
    "fillRect 340 34 2 6",
    "fillRect 340 46 2 6",
    "globalAlpha = 1",
    "fillStyle = var(--error)",
    "fillText d 188 10",
    "globalAlpha = 0.5",
    "fillRect 188 10 2 6",
    "fillRect 188 22 2 6",
    "fillRect 188 34 2 6",
    "fillRect 188 46 2 6",
    "globalAlpha = 1",
    "fillStyle = var(--error)",
    "fillText b 170 10",
    "globalAlpha = 0.5",
    "fillRect 184 10 2 6",
    "fillRect 184 22 2 6",
    "fillRect 184 34 2 6",
    "fillRect 184 46 2 6",
    "globalAlpha = 1",
    "fillStyle = var(--error)",
    "fillText a 152 10",
    "globalAlpha = 0.5",
    "fillRect 180 10 2 6",
    "fillRect 180 22 2 6",
    "fillRect 180 34 2 6",
    "fillRect 180 46 2 6",
    "globalAlpha = 1",
    "fillStyle = var(--error)",
    "fillText h 100 10",
    "globalAlpha = 0.5",
    "fillRect 100 10 2 6",
    "fillRect 100 22 2 6",
    "fillRect 100 34 2 6",
    "fillRect 100 46 2 6",
    "globalAlpha = 1",
    "restore",
  ]);
});

test("a symbol that would be 16 pixels from its line is left out, and on bars there is one symbol for each", () => {
  const symbolsOf = (kind: PlotProps["kind"], ...times: readonly number[]) => {
    const { plot, drawn } = fakePlot();
    drawMarks(
      plot,
      { ...plotOf(kind, { a: values("12345") }), marks: times.map((time) => markAt(time, `${time}`)) },
      colour,
    );
    // Only bars have no lines.
    return drawn.filter(
      (each) => each.startsWith(kind === "bars" ? "fill" : "fillText") && !each.includes("Style"),
    );
  };
  expect([symbolsOf("lines", 60, 59.5, 59), symbolsOf("lines", 60, 59.5, 58.9)]).toEqual([
    ["fillText 60 340 10", "fillText 59.5 322 10"],
    ["fillText 60 340 10", "fillText 59.5 322 10", "fillText 58.9 304 10"],
  ]);
  expect([
    symbolsOf("bars", 20, 20, 60),
    symbolsOf("bars", 60, 55.75),
    symbolsOf("bars", 60, 55.7),
    symbolsOf("bars"),
  ]).toEqual([
    ["fillText 60 340 10", "fillText 20 180 10"],
    ["fillText 60 340 10"],
    ["fillText 60 340 10", "fillText 55.7 322 10"],
    [],
  ]);
});

test("the values of a point are beside the pointer, on the side with room, until it is elsewhere", () => {
  const marks = [markAt(15, "a"), markAt(20, "b"), markAt(10, "c"), markAt(21, "d")];
  const props: PlotProps = {
    ...plotOf("lines", { success: values("123.0"), limited: values("100.0") }),
    marks,
  };
  const at = (idx: number | null, left?: number, isHere = true) => {
    const { plot, over } = fakePlot({ cursor: { idx, left } });
    over.isHere = isHere;
    // Those of another point are gone.
    showValues(plot, props);
    showValues(plot, props);
    const time = localTime(10_000 * (idx ?? 0));
    return over.children.map((each) => String(each).replace(time, "its time"));
  };
  expect([at(2, 40), at(1, 100), at(3, 101), at(4), at(null), at(2, 40, false)]).toEqual([
    [
      "div.plot-values left=52px (strong (its time) div (span.tone-series (●) span (success) span.number (3 a second)) p.tone-error (a a text) p.tone-error (b b text) p.muted (Click or Enter: its requests))",
    ],
    [
      "div.plot-values left=112px (strong (its time) div (span.tone-series (●) span (success) span.number (2 a second)) p.tone-error (c c text) p.muted (Click or Enter: its requests))",
    ],
    [
      "div.plot-values right=111px (strong (its time) div.none (no data) p.tone-error (d d text) p.muted (Click or Enter: its requests))",
    ],
    ["div.plot-values left=12px (strong (its time) div.none (none) p.muted (Click or Enter: its requests))"],
    [],
    [],
  ]);
  const { plot, over } = fakePlot({ cursor: { idx: 1 } });
  showValues(plot, { ...props, times: [0, 86_400, 172_800, 259_200, 345_600], isByDay: true });
  expect(over.children.map(String).join()).toStartWith("div.plot-values left=12px (strong (2 Jan 1970) ");
});

test("names are beside the last points, and move up where they would overlap", () => {
  const namesOf = (props: PlotProps, width = 1_000) => {
    const { plot, over } = fakePlot({ width });
    showNames(plot, props);
    showNames(plot, props);
    return over.children.map(String);
  };
  const two = { success: values("1234."), limited: values("1238.") };
  expect({
    lines: namesOf(plotOf("lines", two)),
    stacked: namesOf(plotOf("stacked", { ...two, none: values("0000.") })),
    bars: namesOf(plotOf("bars", { success: [1, 60], limited: [1, 20], banned: [1, 120] })),
    narrow: namesOf(plotOf("lines", two), 398),
  }).toEqual({
    lines: [
      "span.series-name.tone-muted left=66px top=96px (success)",
      "span.series-name.tone-muted left=66px top=82px (limited)",
    ],
    stacked: [
      "span.series-name.tone-muted left=66px top=98px (success)",
      "span.series-name.tone-muted left=66px top=84px (limited)",
    ],
    bars: [
      "span.series-name.tone-muted left=36px top=70px (success)",
      "span.series-name.tone-muted left=36px top=30px (limited)",
      "span.series-name.tone-muted left=36px top=0px (banned)",
    ],
    narrow: [],
  });
});

test("a plot has names if it has several series, data, and seven times their width", () => {
  const [one, two] = [{ success: values("12") }, { success: values("12"), limited: values("12") }];
  const has = (series: Readonly<Record<string, (number | null)[]>>, width: number) =>
    hasNames(fakePlot({ width }).plot, plotOf("lines", series));
  expect(nameWidth(plotOf("lines", two).series)).toBe(8 + 7 * "success".length);
  expect([has(two, 399), has(two, 398), has(one, 5_000)]).toEqual([true, false, false]);
  expect([has({ a: [1], b: [null] }, 5_000), has({ a: [null], b: [null] }, 5_000)]).toEqual([true, false]);
});
