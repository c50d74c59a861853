/* The canvas of a plot, drawn by uPlot. */

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { localTime } from "../../pages/format.ts";
import { navigate } from "../router.ts";
import { drawnValues, lastWithData, partUrl, plotHint, type PlotProps, pointText } from "./plot-data.ts";
import { type CanvasProps, optionsOf, sizeOf, type Zoom } from "./plot-options.ts";

export function Canvas(props: CanvasProps) {
  const { title, times, series, value, pointUrl, marks, incomplete } = props;
  const area = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const zoom: Zoom = (from, until) => {
    const url = partUrl(latest.current, from, until);
    if (url !== undefined) navigate(url);
  };

  // After the first paint: the figures above are there 70 ms earlier than with the plots.
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    const options = optionsOf(element, () => latest.current, zoom);
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
    "+": () => zoom(index() - times.length / 6, index() + times.length / 6),
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

/** uPlot draws in order. The largest sums come first, so that the others are drawn over them. */
function dataOf(props: PlotProps, width: number): uPlot.AlignedData {
  return [[...props.times], ...drawnValues(props, width).toReversed()];
}
