/* The canvas of a plot, drawn by uPlot. */

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { axisTimes, localTime } from "../../pages/format.ts";
import { navigate } from "../router.ts";
import {
  ceilingOf,
  drawnValues,
  greatestOf,
  plotHint,
  isLine,
  lastWithData,
  type PlotProps,
  pointText,
  type Series,
  stepOf,
} from "./plot-data.ts";
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

interface CanvasProps extends PlotProps {
  readonly onHover: (index: number | undefined) => void;
}

export function Canvas(props: CanvasProps) {
  const { title, times, series, value, pointUrl, marks, incomplete } = props;
  const area = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;

  // After the first paint: the figures above are there 70 ms earlier than with the plots.
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    const options = optionsOf(element, () => latest.current);
    const created = new uPlot(options, dataOf(latest.current, element.clientWidth), element);
    plot.current = created;
    const resize = new ResizeObserver(() => {
      const size = sizeOf(element);
      // It is called once at the beginning, when the plot has this size.
      if (size.width === created.width && size.height === created.height) return;
      created.setSize(size);
      created.setData(dataOf(latest.current, size.width));
    });
    resize.observe(element);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => created.redraw();
    theme.addEventListener("change", repaint);
    return () => {
      theme.removeEventListener("change", repaint);
      resize.disconnect();
      created.destroy();
    };
  }, []);

  useEffect(() => {
    plot.current?.setData(dataOf(props, area.current?.clientWidth ?? 0));
  }, [times, series, marks, incomplete?.until]);

  const index = () => plot.current?.cursor.idx ?? Math.max(0, lastWithData(props));
  const show = () => navigate(pointUrl(times[index()] ?? 0));
  const moveTo = (to: number) => {
    const left = plot.current?.valToPos(times[Math.max(0, Math.min(to, times.length - 1))] ?? 0, "x") ?? 0;
    plot.current?.setCursor({ left, top: 0 });
  };
  const [at, setAt] = useState(0);
  /** The keys of a slider; + shows a third of the times, around the point. */
  const keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => moveTo(index() - 1),
    ArrowRight: () => moveTo(index() + 1),
    PageUp: () => moveTo(index() + Math.ceil(times.length / 10)),
    PageDown: () => moveTo(index() - Math.ceil(times.length / 10)),
    Home: () => moveTo(0),
    End: () => moveTo(times.length - 1),
    Enter: show,
    "+": () => zoomTo(props, index() - times.length / 6, index() + times.length / 6),
  };
  return (
    <div
      class="plot-area"
      ref={area}
      tabIndex={0}
      role="slider"
      aria-label={title}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, times.length - 1)}
      aria-valuenow={at}
      aria-valuetext={`${localTime((times[at] ?? 0) * 1_000)}: ${series.map((each) => `${each.label} ${pointText(each.values[at], value, "no data")}`).join(", ")}`}
      aria-description={plotHint(props)}
      onBlur={() => plot.current?.setCursor({ left: -10, top: -10 })}
      onClick={show}
      onKeyDown={(event) => {
        const act = keys[event.key];
        if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        act();
        setAt(index());
      }}
    />
  );
}

/** A part that has no more than two points has no line. */
const MIN_POINTS = 3;

function zoomTo({ times, zoomUrl }: PlotProps, from: number, until: number): void {
  const first = Math.max(0, Math.min(Math.floor(from), times.length - MIN_POINTS));
  const last = Math.min(times.length - 1, Math.max(Math.ceil(until), first + MIN_POINTS - 1));
  if (zoomUrl && first < last) navigate(zoomUrl(times[first] ?? 0, times[last] ?? 0));
}

/** uPlot draws in order. The largest sums come first, so that the others are drawn over them. */
function dataOf(props: PlotProps, width: number): uPlot.AlignedData {
  return [[...props.times], ...drawnValues(props, width).toReversed()];
}

const sizeOf = ({ clientWidth: width, clientHeight: height }: HTMLElement) => ({ width, height });

function optionsOf(element: HTMLElement, current: () => CanvasProps): uPlot.Options {
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
        range: (_plot, min, max) => (kind === "bars" ? withHalfBars(min, max, current().times) : [min, max]),
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
          if (width > 0) zoomTo(current(), plot.posToIdx(left), plot.posToIdx(left + width));
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

/** The splits of an axis that measure something: zeros have a zero, and what has no data has no scale. */
function measured(splits: number[], { series }: PlotProps): (number | null)[] {
  const greatest = greatestOf(series);
  return greatest > 0 ? splits : splits.map((split) => (split === greatest ? split : null));
}

/** uPlot has none of two minutes. */
const TIME_STEPS = [
  5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800,
];

const TOPS = [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10, 12];

/** The end of an axis that begins with zero, a little above the values: it and its half are round numbers. */
function topOf(max: number, isCount: boolean): number {
  const unit = 10 ** Math.floor(Math.log10(max || 1));
  const isRound = (top: number) => top >= max * 1.02 && (!isCount || top % 2 === 0);
  return TOPS.map((digits) => digits * unit).find(isRound) ?? max;
}

/** Whole powers of ten around the values. */
function decades(min: number | null, max: number | null): [number, number] {
  const low = 10 ** Math.floor(Math.log10(min || 0.1));
  return [low, Math.max(10 ** Math.ceil(Math.log10(max || 1)), low * 10)];
}

function powersOfTen(_plot: uPlot, _axis: number, min: number, max: number): number[] {
  const [low, high] = [Math.round(Math.log10(min)), Math.round(Math.log10(max))];
  return Array.from({ length: high - low + 1 }, (_, i) => Number((10 ** (low + i)).toPrecision(3)));
}

/** A point between two gaps is no line, so it is drawn as a point. */
function isolatedPoints({ data }: uPlot, index: number): number[] {
  const values = data[index] ?? [];
  const isGap = (i: number) => values[i] === null || values[i] === undefined;
  return Array.from(values.keys()).filter((i) => !isGap(i) && isGap(i - 1) && isGap(i + 1));
}

/** The first and the last bar have as much room as the others. */
function withHalfBars(min: number, max: number, times: readonly number[]): [number, number] {
  const half = stepOf(times) / 2;
  return [min - half, max + half];
}
