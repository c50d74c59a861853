/* How uPlot draws a plot, and what it does when somebody points at it or selects a part. */

import uPlot from "uplot";
import { axisTimes } from "../../pages/format.ts";
import { decades, measured, powersOfTen, rangeOfBars, TIME_STEPS, topOf } from "./plot-axes.ts";
import { ceilingOf, isLine, type PlotProps, type Series, stepOf } from "./plot-data.ts";
import {
  type Colour,
  colourOf,
  drawMarks,
  explainNothing,
  hasNames,
  lightenLast,
  nameCutOff,
  nameWidth,
  showNames,
  showValues,
} from "./plot-drawing.ts";

export interface CanvasProps extends PlotProps {
  readonly onHover: (index: number | undefined) => void;
}

/** Shows a part of the times, by the positions of its ends. */
export type Zoom = (from: number, until: number) => void;

export const sizeOf = ({ clientWidth: width, clientHeight: height }: HTMLElement) => ({ width, height });

export function optionsOf(element: HTMLElement, current: () => CanvasProps, zoom: Zoom): uPlot.Options {
  const { series, kind, group, isByDay = false, isCount = false, isLog = false, zoomUrl } = current();
  // A canvas does not know CSS variables: this is what the browser makes of them. A colour is read each time that the
  // plot is drawn, so that it follows the theme. An element for each would take 40 ms of the first plots.
  const probe = element.appendChild(document.createElement("span"));
  const colour = (value: string) => () => {
    probe.style.color = value;
    return getComputedStyle(probe).color;
  };
  const hairline = colour("var(--hairline)");
  const axis = {
    stroke: colour("var(--text-muted)"),
    font: `12px ${getComputedStyle(element).fontFamily}`,
    grid: { stroke: hairline, width: 1 },
    ticks: { stroke: hairline, width: 1, size: 4 },
  };
  const filter = (_plot: uPlot, splits: number[]) => measured(splits, current());
  return {
    ...sizeOf(element),
    legend: { show: false },
    cursor: {
      // A selection in one plot selects nothing in the others.
      sync: { key: group, filters: { pub: (type) => !/up|down/.test(type) } },
      points: kind === "bars" ? { show: false } : {},
      drag: { x: zoomUrl !== undefined, y: false, setScale: false },
      y: false,
    },
    ...(isByDay && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC") }),
    scales: {
      x: {
        // For a plot that is drawn again, uPlot gives the range that it has, which is not that of the times.
        range: (_plot, min, max) => (kind === "bars" ? rangeOfBars(current().times) : [min, max]),
      },
      y: isLog
        ? { distr: 3, range: (_plot, min, max) => decades(min, max) }
        : { range: (_plot, _min, max) => [0, topOf(ceilingOf(current(), max), isCount)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        // The widths of `16:41:52`, `16:41` and `28 Sept`.
        space: (_plot, _axis, min, max) => (max - min < 600 ? 72 : isByDay ? 56 : 50),
        ...(!isByDay && { incrs: TIME_STEPS }),
        size: 28,
        values: (_plot, splits) => axisTimes(splits, isByDay),
      },
      {
        ...axis,
        splits: isLog ? powersOfTen : (_plot, _axis, _min, top) => [0, top / 2, top],
        filter,
        grid: { ...axis.grid, filter },
        ticks: { ...axis.ticks, filter },
        // A digit takes 7.5 px in the widest of the fonts.
        size: (_plot, texts) => 12 + 7.5 * Math.max(...(texts ?? [""]).map(({ length }) => length)),
        values: (_plot, splits) =>
          splits.map((split) => (typeof split === "number" ? current().axisValue(split) : "")),
      },
    ],
    series: [{}, ...series.toReversed().map((each) => seriesOptions(each, kind, colour))],
    padding: [8, (plot) => (hasNames(plot, current()) ? nameWidth(series) : 16), 0, null],
    hooks: {
      setCursor: [
        (plot) => {
          const { over, valToPos } = plot;
          const { idx } = plot.cursor;
          const { times, onHover } = current();
          onHover(idx ?? undefined);
          showValues(plot, current());
          // The line is at its point; around a bar it is wide and pale.
          const line = over.querySelector<HTMLElement>(".u-cursor-x");
          const [left, step] = [times[idx ?? -1] ?? 0, kind === "bars" ? stepOf(times) : 0];
          const width = Math.max(1, valToPos(left + step, "x") - valToPos(left, "x"));
          const transform = `translate(${Math.floor(valToPos(left - step / 2, "x"))}px)`;
          if (line) Object.assign(line.style, { transform, width: `${width}px`, opacity: step ? 0.15 : 0.5 });
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width > 0) zoom(plot.posToIdx(left), plot.posToIdx(left + width));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      drawAxes: [(plot) => explainNothing(plot, current(), colour)],
      draw: [
        (plot) => {
          if (kind === "bars") lightenLast(plot, current(), colour);
          if (kind === "stacked") nameCutOff(plot, current(), colour);
          drawMarks(plot, current(), colour);
          showNames(plot, current());
        },
      ],
    },
  };
}

function seriesOptions(series: Series, kind: PlotProps["kind"], colour: Colour) {
  const { label, tone, isDashed } = series;
  const variable = colourOf(tone);
  const line: uPlot.Series = {
    label,
    stroke: colour(variable),
    width: 1,
    points: { show: true, size: 4, fill: colour(variable), filter: isolatedPoints },
    spanGaps: false,
  };
  if (isDashed) line.dash = [4, 3];
  if (isLine(kind, series)) return line;
  // The fill is opaque, because it covers a larger sum that includes it.
  const share = tone === "muted" ? 50 : 85;
  const fill = colour(`color-mix(in srgb, ${variable} ${share}%, var(--background))`);
  // A burst may be narrower than a pixel: its stroke is seen.
  if (kind === "stacked") return { ...line, fill, stroke: fill, width: 1 };
  const paths = uPlot.paths.bars?.({ size: [0.8, 32] });
  return { ...line, fill, width: 0, points: { show: false }, ...(paths && { paths }) };
}

/** A point between two gaps is no line, so it is drawn as a point. */
function isolatedPoints({ data }: uPlot, index: number): number[] {
  const values = data[index] ?? [];
  const isGap = (i: number) => values[i] === null || values[i] === undefined;
  return Array.from(values.keys()).filter((i) => !isGap(i) && isGap(i - 1) && isGap(i + 1));
}
