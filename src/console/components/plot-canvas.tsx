/* The canvas of a plot, drawn by uPlot. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { axisTimes, localTime } from "../../pages/format.ts";
import { navigate } from "../router.ts";

export interface Series {
  readonly label: string;
  readonly tone: "series" | "limited" | "error" | "fault" | "text" | "muted";
  /** The symbol next to the label: a series is never identified by its colour alone. */
  readonly symbol: string;
  /** A dashed line, which is not added up with the others. */
  readonly isDashed?: boolean;
  /** Null where there is no data: a gap, never zero. */
  readonly values: readonly (number | null)[];
}

/** Something that happened at a moment. */
export interface Mark extends Pick<Series, "label" | "tone" | "symbol"> {
  /** Unix seconds. */
  readonly time: number;
  readonly text: string;
}

export interface PlotProps {
  readonly title: string;
  /** The figures that the plot is about, above it. */
  readonly lead?: ComponentChildren;
  /** Unix seconds. The plot is drawn again when the times or the series are other objects. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** `stacked` adds the series up, the first at the bottom. */
  readonly kind: "lines" | "stacked" | "bars";
  /** Whether the axis is logarithmic, for values that differ by orders of magnitude. */
  readonly isLog?: boolean;
  /** Whether values are counts, so that the axis has no fractions. */
  readonly isCount?: boolean;
  readonly axisValue: (value: number) => string;
  readonly value: (value: number) => string;
  /** Whether each time is a day in UTC, as those of the usage history are. */
  readonly isByDay?: boolean;
  /** Plots with the same name share their cursor. */
  readonly group: string;
  /** The page of a point, by its time in Unix seconds. */
  readonly pointUrl: (time: number) => string;
  /** The page of a part of the times, which the person selects. */
  readonly zoomUrl?: (from: number, until: number) => string;
  /** The plot is drawn again when this is another array. */
  readonly marks?: readonly Mark[];
  /** What is next to the title while there is nothing to show. */
  readonly emptyText?: string;
  /** Why the first times have no data. */
  readonly noDataText: string;
  /** The first point that may have data; by default the first one that has. */
  readonly firstIndex?: number;
}

export const NO_MARKS: readonly Mark[] = [];

/** The last point with data; -1 if there is none. Its values are in the legend, so that hovering moves nothing. */
export function lastWithData({ times, series }: Pick<PlotProps, "times" | "series">): number {
  return times.findLastIndex((_, i) => series.some(({ values }) => typeof values[i] === "number"));
}

export function pointText(
  value: number | null | undefined,
  format: (value: number) => string,
  none = "–",
): string {
  return value === null || value === undefined ? none : format(value);
}

interface CanvasProps extends PlotProps {
  readonly onHover: (index: number | undefined) => void;
}

export function Canvas(props: CanvasProps) {
  const { title, times, series, value, pointUrl, zoomUrl, marks } = props;
  const area = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;

  // After the first paint: the figures above are there 70 ms earlier than with the plots.
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    const options = optionsOf(element, () => latest.current);
    const created = new uPlot(options, dataOf(latest.current), element);
    plot.current = created;
    const resize = new ResizeObserver(() => {
      const size = sizeOf(element);
      // It is called once at the beginning, when the plot has this size.
      if (size.width !== created.width || size.height !== created.height) created.setSize(size);
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

  useEffect(() => plot.current?.setData(dataOf(props)), [times, series, marks]);

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
  const label = `Click or Enter: the requests of that moment${zoomUrl ? ". Drag or +: zoom" : ""}`;
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
      title={label}
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

const isLine = (kind: PlotProps["kind"], { isDashed = false }: Series) => kind === "lines" || isDashed;

/** uPlot draws in order. The largest sums come first, so that the others are drawn over them. */
function dataOf({ times, series, kind }: PlotProps): uPlot.AlignedData {
  const isBars = kind === "bars";
  const sums = times.map(() => 0);
  // A gap within a few points would hide what is next to it where several points are at one pixel.
  const near = 1 + times.length / 160;
  // A part of a bar is high enough to be seen.
  const least = isBars ? greatestOf(series) / 99 : 0;
  const drawn = series.map((each) =>
    each.values.map((value, i) => {
      if (value === null || isLine(kind, each)) return value;
      // Among zeros, a zero would be the thin edge of the area below.
      if (!value && (isBars || !each.values.slice(Math.max(0, i - near), i + near + 1).some(Boolean)))
        return null;
      const sum = (sums[i] ?? 0) + Math.max(value, least);
      sums[i] = sum;
      return sum;
    }),
  );
  return [[...times], ...drawn.toReversed()];
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
        : { range: (_plot, _min, max) => [0, topOf(max, isCount)] },
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
        ({ cursor: { idx }, over, valToPos }) => {
          const { times, onHover } = current();
          onHover(idx ?? undefined);
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

const greatestOf = (series: readonly Series[]) =>
  Math.max(-1, ...series.flatMap(({ values }) => values.map((each) => each ?? -1)));

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

type Colour = (value: string) => () => string;

/** Before the first data there is nothing, which is not zero: that part is shaded and says why. Only zeros say so. */
function explainNothing({ ctx, bbox, valToPos }: uPlot, props: PlotProps, colour: Colour): void {
  const { times, series, noDataText, emptyText = "", firstIndex } = props;
  const first =
    firstIndex ?? times.findIndex((_, i) => series.some(({ values }) => typeof values[i] === "number"));
  const { left, top, height } = bbox;
  const endOf = (index: number) =>
    valToPos(((times[index] ?? 0) + (times[index - 1] ?? 0)) / 2, "x", true) - left;
  const shaded = first === -1 ? bbox.width : first < times.length / 50 ? 0 : endOf(first);
  ctx.save();
  ctx.fillStyle = colour("var(--surface)")();
  ctx.fillRect(left, top, shaded, height);
  ctx.fillStyle = colour("var(--text-muted)")();
  ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  const write = (text: string, from: number, width: number) => {
    if (ctx.measureText(text).width < width) ctx.fillText(text, from + width / 2, top + height / 2);
  };
  write(first === -1 ? "no data" : noDataText, left, shaded);
  if (greatestOf(series) <= 0) write(emptyText, left + shaded, bbox.width - shaded);
  ctx.restore();
}

/** Lightens the last bar: its interval has not ended. */
function lightenLast({ ctx, bbox, valToPos }: uPlot, { times }: PlotProps, colour: Colour): void {
  const [end = 0, before = 0] = [times.at(-1), times.at(-2)];
  const left = valToPos((end + before) / 2, "x", true);
  ctx.save();
  ctx.fillStyle = colour("color-mix(in srgb, var(--background) 25%, transparent)")();
  ctx.fillRect(left, bbox.top, bbox.left + bbox.width - left, bbox.height);
  ctx.restore();
}

/**
 * The symbol of the latest mark is on its line; earlier ones that are close move to the left, and those without room
 * are left out. A bar may be as narrow as the line of a mark, so it has one symbol and no line.
 */
function drawMarks({ ctx, bbox, valToPos }: uPlot, props: PlotProps, colour: Colour): void {
  const { marks = NO_MARKS, kind } = props;
  const [reach, lineHeight] = kind === "bars" ? [1, 0] : [16 * devicePixelRatio, bbox.height];
  ctx.save();
  ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  let free = Infinity;
  for (const { time, tone, symbol } of marks.toSorted((a, b) => b.time - a.time)) {
    const x = valToPos(time, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.fillStyle = colour(colourOf(tone))();
    const at = Math.min(x, free);
    if (at > x - reach) {
      ctx.fillText(symbol, at, bbox.top);
      free = at - 9 * devicePixelRatio;
    }
    ctx.globalAlpha = 0.5;
    for (let y = 0; y < lineHeight; y += 6 * devicePixelRatio)
      ctx.fillRect(x, bbox.top + y, devicePixelRatio, 3 * devicePixelRatio);
    ctx.globalAlpha = 1;
  }
  ctx.restore();
}

const colourOf = (tone: Series["tone"]): string => `var(--${tone === "muted" ? "text-muted" : tone})`;

const NAME_HEIGHT_PX = 14;
const nameWidth = (series: readonly Series[]) => 8 + 7 * Math.max(...series.map(({ label }) => label.length));

/** Names take a seventh of the width at most, which is for the data: the legend has the names, too. */
const hasNames = ({ width }: uPlot, props: PlotProps) =>
  props.series.length > 1 && width >= 7 * nameWidth(props.series) && lastWithData(props) >= 0;

/** Shows the name of each series next to its last point. Names that would overlap move up. */
function showNames(plot: uPlot, props: PlotProps): void {
  for (const name of plot.over.querySelectorAll(".series-name")) name.remove();
  if (!hasNames(plot, props)) return;
  const { times, series, kind } = props;
  const last = lastWithData(props);
  const step = kind === "bars" ? stepOf(times) : 0;
  const left = plot.valToPos((times[last] ?? 0) + step / 2, "x") + 6;
  let below = 0;
  const names = series.flatMap((each) => {
    const value = each.values[last] ?? 0;
    const at = isLine(kind, each) ? value : below + value / 2;
    if (!isLine(kind, each)) below += value;
    return value > 0 ? [{ ...each, top: plot.valToPos(at, "y") }] : [];
  });
  let highest = Infinity;
  for (const { label, tone, top } of names.toSorted((a, b) => b.top - a.top)) {
    highest = Math.min(top, highest - NAME_HEIGHT_PX);
    const name = document.createElement("span");
    name.className = `series-name tone-${tone === "series" ? "muted" : tone}`;
    name.textContent = label;
    Object.assign(name.style, { left: `${left}px`, top: `${highest}px` });
    plot.over.append(name);
  }
}

/** A point between two gaps is no line, so it is drawn as a point. */
function isolatedPoints({ data }: uPlot, index: number): number[] {
  const values = data[index] ?? [];
  const isGap = (i: number) => values[i] === null || values[i] === undefined;
  return Array.from(values.keys()).filter((i) => !isGap(i) && isGap(i - 1) && isGap(i + 1));
}

const stepOf = (times: readonly number[]) => (times[1] ?? 0) - (times[0] ?? 0);

/** The first and the last bar have as much room as the others. */
function withHalfBars(min: number, max: number, times: readonly number[]): [number, number] {
  const half = stepOf(times) / 2;
  return [min - half, max + half];
}
