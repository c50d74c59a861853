import { Histogram } from "./histogram.ts";

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels?: Labels;
  readonly value: number | Histogram;
}

export interface MetricFamily {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly samples: readonly Sample[];
}

/** The two formats: https://prometheus.io/docs/instrumenting/exposition_formats and OpenMetrics 1.0. */
type Format = "text" | "openmetrics";

export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

const OPEN_METRICS_VERSIONS = new Set(["1.0.0", "0.0.1", undefined]);
const TEXT_TYPES = new Set(["text/plain", "text/*", "*/*"]);

export function formatFor(accept: string | null): Format {
  const ranges = (accept ?? "").toLowerCase().split(",").map(rangeOf);
  const qualityOf = (isMeant: (range: (typeof ranges)[number]) => boolean) =>
    Math.max(0, ...ranges.filter(isMeant).map(({ quality }) => quality));
  const openMetrics = qualityOf(
    ({ type, version }) => type === "application/openmetrics-text" && OPEN_METRICS_VERSIONS.has(version),
  );
  const text = qualityOf(({ type }) => TEXT_TYPES.has(type));
  return openMetrics > 0 && openMetrics >= text ? "openmetrics" : "text";
}

function rangeOf(range: string) {
  const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
  const { q = "1", version } = Object.fromEntries(parameters.map((parameter) => parameter.split("=")));
  return { type, version, quality: Number(q) || 0 };
}

/** Formats the metrics, and omits those without series. */
export function formatMetrics(families: readonly MetricFamily[], format: Format): string {
  const texts = families
    .filter(({ samples }) => samples.length > 0)
    .map((family) => headOf(family, format) + bodyOf(family));
  return texts.join("") + (format === "openmetrics" ? "# EOF\n" : "");
}

/** The lines before the series of a metric. OpenMetrics names a counter without `_total`, and states units. */
function headOf({ name, type, help }: MetricFamily, format: Format): string {
  const family = format === "openmetrics" ? name.replace(/_total$/, "") : name;
  const unit = format === "openmetrics" ? /_(seconds|bytes)$/.exec(family)?.[1] : undefined;
  const unitLine = unit === undefined ? "" : `# UNIT ${family} ${unit}\n`;
  return `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n${unitLine}`;
}

function bodyOf({ name, samples }: MetricFamily): string {
  return samples
    .map(({ labels = {}, value }) =>
      value instanceof Histogram
        ? histogramLines(name, pairsOf(labels), value)
        : line(name, pairsOf(labels), value),
    )
    .join("");
}

/** The lines of a histogram. Most of them are buckets, which share the text of their labels. */
function histogramLines(name: string, pairs: string, histogram: Histogram): string {
  const { bounds, shownBounds, counts, sum } = histogram;
  const start = `${name}_bucket{${pairs}${pairs === "" ? "" : ","}le="`;
  let count = 0;
  let lines = "";
  for (let i = 0; i < counts.length; i++) {
    count += counts[i] ?? 0;
    const bound = bounds[i] ?? Infinity;
    if (bound === Infinity || shownBounds.includes(bound))
      lines += `${start}${boundText(bound)}"} ${count}\n`;
  }
  return lines + line(`${name}_sum`, pairs, sum) + line(`${name}_count`, pairs, count);
}

/** A bound is the same text in both formats, so that a series stays the same when the format changes. */
function boundText(bound: number): string {
  return Number.isInteger(bound) ? `${bound}.0` : valueText(bound);
}

/** The labels as text, such as `operation="getPet",status="200"`. */
function pairsOf(labels: Labels): string {
  return Object.entries(labels)
    .map(([label, text]) => `${label}="${escaped(text)}"`)
    .join(",");
}

function line(name: string, pairs: string, value: number): string {
  return `${name}${pairs === "" ? "" : `{${pairs}}`} ${valueText(value)}\n`;
}

function valueText(value: number): string {
  return value === Infinity ? "+Inf" : String(value);
}

function escaped(text: string): string {
  return text.replace(/[\\"]/g, "\\$&").replace(/\n/g, "\\n");
}
