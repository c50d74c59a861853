/* What a plot shows, before it is drawn: values, sums, gaps, and how high its axis is. */

import type { ComponentChildren } from "preact";

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
  /** Whether a point is unknown, which is not zero; by default if no series has a value there. */
  readonly isUnknown?: (index: number) => boolean;
  /** The values up to a time, in Unix seconds, are not all that there was. */
  readonly incomplete?: { readonly until: number; readonly text: string } | undefined;
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

export const isLine = (kind: PlotProps["kind"], { isDashed = false }: Series): boolean =>
  kind === "lines" || isDashed;

export const greatestOf = (series: readonly Series[]): number =>
  Math.max(-1, ...series.flatMap(({ values }) => values.map((each) => each ?? -1)));

export const stepOf = (times: readonly number[]): number => (times[1] ?? 0) - (times[0] ?? 0);

/** The sum of the series at each time. */
export function totalsOf({ times, series, kind }: Pick<PlotProps, "times" | "series" | "kind">): number[] {
  const added = series.filter((each) => !isLine(kind, each));
  return times.map((_, i) => added.reduce((sum, { values }) => sum + (values[i] ?? 0), 0));
}

/** The marks of the step that ends at a point. */
export function marksAt({ times, marks = NO_MARKS }: PlotProps, index: number): readonly Mark[] {
  const [end = 0, before = -Infinity] = [times[index], times[index - 1]];
  return marks.filter(({ time }) => time > before && time <= end);
}

/** A part that has no more than two points has no line. */
const MIN_POINTS = 3;

/** The page of a part of the times, by the positions of its ends; undefined if there is none. */
export function partUrl({ times, zoomUrl }: PlotProps, from: number, until: number): string | undefined {
  const first = Math.max(0, Math.min(Math.floor(from), times.length - MIN_POINTS));
  const last = Math.min(times.length - 1, Math.max(Math.ceil(until), first + MIN_POINTS - 1));
  return first < last ? zoomUrl?.(times[first] ?? 0, times[last] ?? 0) : undefined;
}

/** What a point and a part of the plot lead to. */
export const plotHint = ({ zoomUrl }: PlotProps): string =>
  `Click or Enter: its requests${zoomUrl ? ". Drag or +: zoom" : ""}`;

/** The first and the last index of points in a row. */
export interface Run {
  readonly first: number;
  readonly last: number;
}

export function runsOf(length: number, isIn: (index: number) => boolean): Run[] {
  const runs: Run[] = [];
  for (let i = 0; i < length; i++) {
    if (!isIn(i)) continue;
    const before = runs.at(-1);
    if (before?.last === i - 1) runs[runs.length - 1] = { first: before.first, last: i };
    else runs.push({ first: i, last: i });
  }
  return runs;
}

/** Where nothing is known. The latest point alone may only be late, and a few at the beginning would not be seen. */
export function gapsOf({ times, series, isUnknown }: PlotProps): Run[] {
  const isGap = isUnknown ?? ((i: number) => !series.some(({ values }) => typeof values[i] === "number"));
  const end = times.length - 1;
  return runsOf(times.length, isGap).filter(
    ({ first, last }) => first !== end && (first > 0 || last >= times.length / 50),
  );
}

/** The factor by which a burst is higher than nearly all other points. */
const BURST = 3;
/** The part of the points that a burst may have. */
const BURST_PART = 0.025;

/**
 * The value up to which the axis goes: the greatest one, unless a few points are far above all others, which would be
 * a flat line below them. These few points are cut off, and named.
 */
export function ceilingOf(props: Pick<PlotProps, "times" | "series" | "kind">, greatest: number): number {
  if (props.kind !== "stacked") return greatest;
  const sorted = totalsOf(props).toSorted((a, b) => b - a);
  const usual = sorted[Math.ceil(sorted.length * BURST_PART)] ?? 0;
  return usual > 0 && greatest > BURST * usual ? usual * 1.25 : greatest;
}

/** The point whose values are drawn at a point: itself, or a burst within `reach` points to either side. */
function drawnPoint(totals: readonly number[], index: number, reach: number): number {
  let drawn = index;
  for (let i = Math.max(0, index - reach); i <= index + reach; i++)
    if ((totals[i] ?? 0) > Math.max(totals[drawn] ?? 0, BURST * (totals[index] ?? 0))) drawn = i;
  return drawn;
}

/** The width of a burst in pixels, however many points a pixel has. */
const BURST_PX = 4;

/** The values of each series as they are drawn, added up where the plot does, in the order of the series. */
export function drawnValues({ times, series, kind }: PlotProps, width: number): (number | null)[][] {
  const isBars = kind === "bars";
  const sums = times.map(() => 0);
  const totals = totalsOf({ times, series, kind });
  const reach = isBars || width === 0 ? 0 : Math.floor(((times.length / width) * BURST_PX) / 2);
  // A gap within a few points would hide what is next to it where several points are at one pixel.
  const near = 1 + Math.max(reach, times.length / 160);
  // A part of a bar is high enough to be seen.
  const least = isBars ? greatestOf(series) / 99 : 0;
  const points = times.map((_, i) => (reach === 0 ? i : drawnPoint(totals, i, reach)));
  return series.map((each) => {
    if (isLine(kind, each)) return [...each.values];
    const values = each.values.map((value, i) =>
      value === null ? null : (each.values[points[i] ?? i] ?? 0),
    );
    return values.map((value, i) => {
      if (value === null) return null;
      // Among zeros, a zero would be the thin edge of the area below.
      if (!value && (isBars || !values.slice(Math.max(0, i - near), i + near + 1).some(Boolean))) return null;
      const sum = (sums[i] ?? 0) + Math.max(value, least);
      sums[i] = sum;
      return sum;
    });
  });
}
