import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { formatTime } from "../../text/formatting.ts";
import { localTime, utcDay, utcTime } from "../format.ts";
import { navigate } from "../router.ts";
import { type Column, DataTable } from "./tables.tsx";
import { LocalTime } from "./values.tsx";

export interface Series {
  readonly label: string;
  readonly tone: "ok" | "limited" | "error" | "text" | "muted";
  /** The symbol next to the label: a series is never identified by its colour alone. */
  readonly symbol: string;
  readonly isDashed?: boolean;
  /** Null where there is no data: a gap, never zero. */
  readonly values: readonly (number | null)[];
}

export interface PlotProps {
  readonly title: string;
  /** Unix seconds. The plot is drawn again when the times or the series are other objects. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** `stacked` adds the series up, the first at the bottom. */
  readonly kind: "lines" | "stacked" | "bars";
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
  /** What is next to the title while there is nothing to show. */
  readonly emptyText: string;
}

const HEIGHT_PX = 220;

/** A plot of series over time, with the same data as a table below. */
export function Plot(props: PlotProps) {
  const { title, times, series, value, isByDay = false, emptyText } = props;
  const [hovered, setHovered] = useState<number>();
  const hasData = series.some(({ values }) => values.some((each) => each !== null));
  const shown = hovered !== undefined && hovered < times.length ? hovered : undefined;
  const time = shown === undefined ? undefined : times[shown];
  return (
    <figure class="plot">
      <div class="plot-head">
        <h2>{title}</h2>
        <span class="muted small" title={time === undefined ? undefined : utcTime(time * 1_000)}>
          {time === undefined ? (hasData ? null : emptyText) : (isByDay ? utcDay : localTime)(time * 1_000)}
        </span>
      </div>
      <ul class="legend">
        {series.map(({ label, tone, symbol, values }) => (
          <li key={label}>
            <span class={`symbol tone-${tone}`} aria-hidden="true">
              {symbol}
            </span>
            {label} <span class="number">{shown === undefined ? null : text(values[shown], value)}</span>
          </li>
        ))}
      </ul>
      <Canvas key={title} {...props} onHover={setHovered} />
      <PlotData {...props} />
    </figure>
  );
}

function text(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "no data" : format(value);
}

interface CanvasProps extends PlotProps {
  readonly onHover: (index: number | undefined) => void;
}

function Canvas(props: CanvasProps) {
  const { times, series, pointUrl } = props;
  const area = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    const options = optionsOf(element, () => latest.current);
    const created = new uPlot(options, dataOf(latest.current), element);
    plot.current = created;
    const resize = new ResizeObserver(() =>
      created.setSize({ width: element.clientWidth, height: HEIGHT_PX }),
    );
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

  useEffect(() => plot.current?.setData(dataOf(props)), [times, series]);

  const show = () => navigate(pointUrl(times[plot.current?.cursor.idx ?? times.length - 1] ?? 0));
  const title = "Click: the requests of that moment";
  return <div class="plot-area" ref={area} aria-hidden="true" title={title} onClick={show} />;
}

/** uPlot draws in order. The largest sums come first, so that the others are drawn over them. */
function dataOf({ times, series, kind }: PlotProps): uPlot.AlignedData {
  if (kind === "lines") return [[...times], ...series.map(({ values }) => [...values])];
  const sums: (number | null)[][] = [];
  let below: readonly (number | null)[] = times.map(() => 0);
  for (const { values } of series) {
    const sum = values.map((value, i) => (value === null ? null : value + (below[i] ?? 0)));
    sums.unshift(sum);
    below = sum;
  }
  return [[...times], ...sums];
}

function optionsOf(element: HTMLElement, current: () => CanvasProps): uPlot.Options {
  const { series, kind, group, isByDay = false, isCount = false } = current();
  // A colour is read each time that the plot is drawn, so that it follows the theme.
  const colour = (value: string) => () => resolved(element, value);
  const hairline = colour("var(--hairline)");
  const axis = {
    stroke: colour("var(--text-muted)"),
    font: `12px ${getComputedStyle(element).fontFamily}`,
    grid: { stroke: hairline, width: 1 },
    ticks: { stroke: hairline, width: 1, size: 4 },
  };
  const drawn = kind === "lines" ? series : series.toReversed();
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: {
      sync: { key: group },
      points: { show: kind === "lines" },
      drag: { x: false, y: false },
      y: false,
    },
    ...(isByDay && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC") }),
    scales: {
      x: {
        range: (_plot, min, max) => (kind === "bars" ? withHalfBars(min, max, current().times) : [min, max]),
      },
      y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      { ...axis, space: 70, values: TIME_FORMATS },
      {
        ...axis,
        ...(isCount && { incrs: COUNT_STEPS }),
        size: 56,
        values: (_plot, splits) => splits.map((split) => current().axisValue(split)),
      },
    ],
    series: [{}, ...drawn.map((each) => seriesOptions(each, kind, colour))],
    padding: [null, series.length > 1 ? NAME_WIDTH_PX : null, null, null],
    hooks: {
      setCursor: [({ cursor }) => current().onHover(cursor.idx ?? undefined)],
      draw: [(plot) => showNames(plot, current())],
    },
  };
}

function seriesOptions(
  { label, tone, isDashed }: Series,
  kind: PlotProps["kind"],
  colour: (value: string) => () => string,
) {
  const variable = `var(--${tone === "muted" ? "text-muted" : tone})`;
  const line: uPlot.Series = {
    label,
    stroke: colour(variable),
    width: 1.5,
    points: { show: true, size: 4, filter: isolatedPoints },
    spanGaps: false,
  };
  if (isDashed) line.dash = [4, 3];
  if (kind === "lines") return line;
  // Opaque, because what lies below it is a sum that contains it.
  const fill = colour(`color-mix(in srgb, ${variable} 75%, var(--background))`);
  if (kind === "stacked") return { ...line, fill, width: 0 };
  const paths = uPlot.paths.bars?.({ size: [0.7, 32] });
  return { ...line, fill, width: 0, points: { show: false }, ...(paths && { paths }) };
}

const COUNT_STEPS = Array.from({ length: 10 }, (_, power) =>
  [1, 2, 5].map((digit) => digit * 10 ** power),
).flat();

const NAME_HEIGHT_PX = 14;
const NAME_WIDTH_PX = 56;

/** Shows the name of each series next to its last point. Names that would overlap move up. */
function showNames(plot: uPlot, { times, series, kind }: PlotProps): void {
  for (const name of plot.over.querySelectorAll(".series-name")) name.remove();
  if (series.length < 2) return;
  const last = times.findLastIndex((_, i) => series.some(({ values }) => typeof values[i] === "number"));
  const step = kind === "bars" ? (times[1] ?? 0) - (times[0] ?? 0) : 0;
  const left = plot.valToPos((times[last] ?? 0) + step / 2, "x") + 6;
  let below = 0;
  const names = series.flatMap(({ label, tone, values }) => {
    const value = values[last] ?? 0;
    const at = kind === "lines" ? value : below + value / 2;
    below += value;
    return value > 0 ? [{ label, tone, top: plot.valToPos(at, "y") }] : [];
  });
  let highest = Infinity;
  for (const { label, tone, top } of names.toSorted((a, b) => b.top - a.top)) {
    highest = Math.min(top, highest - NAME_HEIGHT_PX);
    const name = document.createElement("span");
    name.className = `series-name tone-${tone}`;
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

/** The first and the last bar have as much room as the others. */
function withHalfBars(min: number, max: number, times: readonly number[]): [number, number] {
  const half = ((times[1] ?? 0) - (times[0] ?? 0)) / 2;
  return [min - half, max + half];
}

/** Each row has the least length of a step, the text, and what is added below when a year, month, day … begins. */
const TIME_FORMATS: uPlot.Axis.Values = [
  [365 * 86_400, "{YYYY}", null, null, null, null, null, null, 1],
  [86_400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
];

/** A canvas does not know CSS variables: what the browser makes of one, as a colour. */
function resolved(element: HTMLElement, value: string): string {
  const probe = document.createElement("span");
  probe.style.color = value;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Shows the same data to people who do not see the plot, and exactly. The rows exist while it is open. */
function PlotData({ title, times, series, value, isByDay = false }: PlotProps) {
  const [isOpen, setOpen] = useState(false);
  const columns: Column<number>[] = [
    {
      heading: "Time",
      cell: (i) => <LocalTime at={formatTime((times[i] ?? 0) * 1_000)} text={isByDay ? utcDay : localTime} />,
    },
    ...series.map(({ label, values }) => ({
      heading: label,
      isNumber: true,
      cell: (i: number) => text(values[i], value),
    })),
  ];
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title} as a table</summary>
      {isOpen && (
        <div class="data-table" tabIndex={0} role="region" aria-label={`${title}: data`}>
          <DataTable caption={title} columns={columns} rows={[...times.keys()]} isCompact />
        </div>
      )}
    </details>
  );
}
