/* What a plot draws besides its series: gaps, marks, names, and what its axis cuts off. */

import type uPlot from "uplot";
import { localTime, utcDay } from "../../pages/format.ts";
import {
  gapsOf,
  greatestOf,
  plotHint,
  isLine,
  lastWithData,
  marksAt,
  NO_MARKS,
  type PlotProps,
  pointText,
  runsOf,
  type Series,
  stepOf,
  totalsOf,
} from "./plot-data.ts";

/** What a canvas makes of a colour of the style sheet, when it is drawn. */
export type Colour = (value: string) => () => string;

const fontOf = (px: number) => `${px * devicePixelRatio}px system-ui, sans-serif`;

/** Hatches the times of which nothing is known and says why, because it is not zero. A plot of zeros says so, too. */
export function explainNothing(plot: uPlot, props: PlotProps, colour: Colour): void {
  const { ctx, bbox, valToPos } = plot;
  const { times, series, noDataText, emptyText = "", incomplete } = props;
  const { left, top, width, height } = bbox;
  const end = left + width;
  const at = (index: number) => ((times[index] ?? 0) + (times[index - 1] ?? 0)) / 2;
  const xOf = (time: number) => Math.max(left, Math.min(end, valToPos(time, "x", true)));
  ctx.save();
  ctx.font = fontOf(12);
  ctx.textAlign = "center";
  const hatch = (from: number, until: number) => {
    ctx.save();
    ctx.beginPath();
    ctx.rect(from, top, until - from, height);
    ctx.clip();
    ctx.fillStyle = colour("var(--surface)")();
    ctx.fillRect(from, top, until - from, height);
    ctx.strokeStyle = colour("var(--hairline)")();
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    const distance = 8 * devicePixelRatio;
    for (let x = Math.floor((from - height) / distance) * distance; x < until; x += distance) {
      ctx.moveTo(x, top + height);
      ctx.lineTo(x + height, top);
    }
    ctx.stroke();
    ctx.restore();
  };
  const write = (text: string, from: number, until: number, y = top + height / 2) => {
    if (ctx.measureText(text).width > until - from) return;
    ctx.fillStyle = colour("var(--text-muted)")();
    ctx.fillText(text, (from + until) / 2, y);
  };
  const gaps = gapsOf(props);
  const isNothing = gaps[0]?.first === 0 && gaps[0].last === times.length - 1;
  let known = left;
  for (const { first, last } of gaps) {
    const from = first === 0 ? left : xOf(at(first));
    const until = last === times.length - 1 ? end : xOf(at(last + 1));
    hatch(from, until);
    write(isNothing || first > 0 ? "no data" : noDataText, from, until);
    if (first === 0) known = until;
  }
  if (incomplete && xOf(incomplete.until) > known) {
    const until = xOf(incomplete.until);
    hatch(known, until);
    write(incomplete.text, known, until, top + 16 * devicePixelRatio);
  }
  if (greatestOf(series) <= 0 && !isNothing) write(emptyText, known, end);
  ctx.restore();
}

/** The height of each burst that the axis cuts off, beside its upper end. */
export function nameCutOff({ ctx, bbox, valToPos, scales }: uPlot, props: PlotProps, colour: Colour): void {
  const { times, value } = props;
  const totals = totalsOf(props);
  const top = scales["y"]?.max ?? Infinity;
  const [end, margin] = [bbox.left + bbox.width, 6 * devicePixelRatio];
  ctx.save();
  ctx.font = fontOf(11);
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.fillStyle = colour("var(--text)")();
  let free = bbox.left;
  for (const { first, last } of runsOf(totals.length, (i) => (totals[i] ?? 0) > top)) {
    const text = `↑ ${value(Math.max(...totals.slice(first, last + 1)))}`;
    const width = ctx.measureText(text).width;
    const right = valToPos(times[last] ?? 0, "x", true) + margin;
    const left = right + width < end ? right : valToPos(times[first] ?? 0, "x", true) - margin - width;
    // Two that overlap would be illegible: the table has both.
    if (left < free) continue;
    ctx.fillText(text, left, bbox.top + 2 * devicePixelRatio);
    free = left + width;
  }
  ctx.restore();
}

/** Lightens the last bar: its interval has not ended. */
export function lightenLast({ ctx, bbox, valToPos }: uPlot, { times }: PlotProps, colour: Colour): void {
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
export function drawMarks({ ctx, bbox, valToPos }: uPlot, props: PlotProps, colour: Colour): void {
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

export const colourOf = (tone: Series["tone"]): string => `var(--${tone === "muted" ? "text-muted" : tone})`;

function element(tag: string, className: string, ...children: readonly (Node | string)[]): HTMLElement {
  const made = Object.assign(document.createElement(tag), { className });
  made.append(...children);
  return made;
}

/** The values of the point under the cursor, beside it. Other plots with the same cursor have theirs in the legend. */
export function showValues({ over, cursor }: uPlot, props: PlotProps): void {
  over.querySelector(".plot-values")?.remove();
  const { times, series, value, isByDay = false } = props;
  const { idx, left = 0 } = cursor;
  const isHere = over.matches(":hover, :focus-visible *");
  if (idx === null || idx === undefined || !isHere) return;
  // The legend has what is zero, too.
  const rows = series
    .filter(({ values }) => values[idx])
    .map(({ label, tone, symbol, values }) =>
      element(
        "div",
        "",
        element("span", `tone-${tone}`, symbol),
        element("span", "", label),
        element("span", "number", pointText(values[idx], value)),
      ),
    );
  const isKnown = series.some(({ values }) => typeof values[idx] === "number");
  const box = element(
    "div",
    "plot-values",
    element("strong", "", (isByDay ? utcDay : localTime)((times[idx] ?? 0) * 1_000)),
    ...(rows.length > 0 ? rows : [element("div", "none", isKnown ? "none" : "no data")]),
    ...marksAt(props, idx).map(({ tone, symbol, text }) => element("p", `tone-${tone}`, `${symbol} ${text}`)),
    element("p", "muted", plotHint(props)),
  );
  const isAtEnd = left > over.clientWidth / 2;
  box.style.setProperty(isAtEnd ? "right" : "left", `${(isAtEnd ? over.clientWidth - left : left) + 12}px`);
  over.append(box);
}

const NAME_HEIGHT_PX = 14;
export const nameWidth = (series: readonly Series[]) =>
  8 + 7 * Math.max(...series.map(({ label }) => label.length));

/** Names take a seventh of the width at most, which is for the data: the legend has the names, too. */
export const hasNames = ({ width }: uPlot, props: PlotProps) =>
  props.series.length > 1 && width >= 7 * nameWidth(props.series) && lastWithData(props) >= 0;

/** Shows the name of each series next to its last point. Names that would overlap move up. */
export function showNames(plot: uPlot, props: PlotProps): void {
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
    return value > 0 ? [{ ...each, top: Math.max(0, plot.valToPos(at, "y")) }] : [];
  });
  let highest = Infinity;
  for (const { label, tone, top } of names.toSorted((a, b) => b.top - a.top)) {
    highest = Math.min(top, highest - NAME_HEIGHT_PX);
    const name = element("span", `series-name tone-${tone === "series" ? "muted" : tone}`, label);
    Object.assign(name.style, { left: `${left}px`, top: `${highest}px` });
    plot.over.append(name);
  }
}
