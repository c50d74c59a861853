import type { App } from "../../src/app.ts";

export interface ParsedMetrics {
  /** The value of a series such as `petstore_bans_total` or `up{job="a",instance="b"}`, labels in the order sent. */
  value(series: string): number | undefined;
  /** The sum of all series whose name and labels match. */
  sum(pattern: RegExp): number;
  readonly series: readonly string[];
  readonly types: ReadonlyMap<string, string>;
}

/** The text format of Prometheus, as far as Petstore uses it. Throws on a line that it cannot read. */
export function parseMetrics(text: string): ParsedMetrics {
  const values = new Map<string, number>();
  const types = new Map<string, string>();
  for (const line of text.trimEnd().split("\n")) {
    const [, family = "", type = ""] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? [];
    if (type !== "") types.set(family, type);
    if (line.startsWith("#")) continue;
    const match = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line);
    const [, series = "", value = ""] = match ?? [];
    if (match === null || values.has(series)) throw new Error(`unexpected line: ${line}`);
    values.set(series, value === "+Inf" ? Infinity : Number(value));
  }
  return {
    value: (series) => values.get(series),
    sum: (pattern) =>
      [...values].reduce((sum, [series, value]) => sum + (pattern.test(series) ? value : 0), 0),
    series: [...values.keys()],
    types,
  };
}

export function metricsOf(app: App): ParsedMetrics {
  return parseMetrics(app.metrics.expose());
}
