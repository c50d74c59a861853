import { useState } from "preact/hooks";
import { formatTime, grouped } from "../../text/formatting.ts";
import { localTime, utcDay, utcTime } from "../../pages/format.ts";
import { Canvas } from "./plot-canvas.tsx";
import { lastWithData, marksAt, NO_MARKS, type PlotProps, pointText, type Series } from "./plot-data.ts";
import { type Column, DataTable } from "./tables.tsx";
import { LocalTime } from "./values.tsx";

/** A plot of series over time, with the same data as a table below. */
export function Plot(props: PlotProps) {
  const { title, times, series, value, kind, isByDay = false, emptyText, lead, marks = NO_MARKS } = props;
  const [hovered, setHovered] = useState<number>();
  const last = lastWithData(props);
  const shown = hovered !== undefined && hovered < times.length ? hovered : undefined;
  const isBars = kind === "bars";
  const time = times[shown ?? (isBars ? last : -1)];
  const text = time !== undefined && (isByDay ? utcDay : localTime)(time * 1_000);
  // The bars of hours need no seconds.
  const moment = text && isBars ? text.replace(/:00$/, "") : text;
  const symbols = Map.groupBy(marks, ({ label }) => label);
  return (
    <figure class="plot card">
      <div class="plot-head">
        <h2>{title}</h2>
        <span class="muted small" title={time === undefined ? undefined : utcTime(time * 1_000)}>
          {Array.from(symbols, ([label, [mark, ...others]]) => (
            <span key={label} class="mark">
              <span class={`tone-${mark?.tone}`} aria-hidden="true">
                {mark?.symbol}
              </span>{" "}
              {label} {grouped(others.length + 1)}{" "}
            </span>
          ))}
          {last === -1 && shown === undefined && emptyText}
          {!isBars && moment}
        </span>
      </div>
      {lead}
      <ul class="legend">
        {series.map(({ label, tone, symbol, values }) => (
          <li key={label}>
            <span class={`symbol tone-${tone}`} aria-hidden="true">
              {symbol}
            </span>
            {label}{" "}
            <span class="number" style={{ minWidth: `max(4ch, ${longestOf(values, value)}ch)` }}>
              {pointText(values[shown ?? last], value)}
            </span>
          </li>
        ))}
        {isBars && (
          <li class="moment">
            {moment}
            {time === times[last] && ", so far"}
          </li>
        )}
      </ul>
      <Canvas key={title + series.length} {...props} onHover={setHovered} />
      <PlotData {...props} />
    </figure>
  );
}

/** The length of the greatest value: its width is reserved, so that hovering moves nothing. */
const longestOf = (values: Series["values"], text: PlotProps["value"]): number =>
  text(Math.max(0, ...values.map(Number))).length;

/** Shows the same data to people who do not see the plot, and exactly. The rows exist while it is open. */
function PlotData(props: PlotProps) {
  const { title, times, series, value, isByDay = false, marks = NO_MARKS } = props;
  const [isOpen, setOpen] = useState(false);
  const columns: Column<number>[] = [
    {
      heading: "Time",
      cell: (i) => <LocalTime at={formatTime((times[i] ?? 0) * 1_000)} text={isByDay ? utcDay : localTime} />,
    },
    ...series.map(({ label, values }) => ({
      heading: label,
      isNumber: true,
      cell: (i: number) => pointText(values[i], value),
    })),
    ...(marks.length === 0
      ? []
      : [{ heading: "Events", cell: (i: number) => marksAt(props, i).map(({ text }) => <div>{text}</div>) }]),
  ];
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title} as a table</summary>
      {isOpen && (
        <div class="data-table" tabIndex={0} role="region" aria-label={`${title}: data`}>
          <DataTable caption={title} columns={columns} rows={[...times.keys()].toReversed()} isCompact />
        </div>
      )}
    </details>
  );
}
