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

/** The media type of https://prometheus.io/docs/instrumenting/exposition_formats. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Formats the metrics as Prometheus reads them, and omits those without series. */
export function formatMetrics(families: readonly MetricFamily[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .map(
      ({ name, type, help, samples }) =>
        `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${linesOf(name, samples)}`,
    )
    .join("");
}

function linesOf(name: string, samples: readonly Sample[]): string {
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

/** The bound of a bucket. It is part of the name of a series, which stays that of earlier releases. */
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
