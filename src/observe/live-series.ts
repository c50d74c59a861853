import { LATENCY_BUCKETS, latencyQuantile } from "./monitors.ts";
import type { OutcomeTotals, RequestMetrics } from "./request-metrics.ts";
import { type ScheduledTimer, scheduler } from "../event-loop.ts";

/** What the series are made of. */
interface LiveSources {
  readonly requests: Pick<RequestMetrics, "totals" | "latencies">;
  readonly connections: () => number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

type Values = readonly (number | null)[];

const LIVE_RANGES = {
  "15m": 15 * 60_000,
  "1h": 60 * 60_000,
  "6h": 6 * 60 * 60_000,
  "24h": 24 * 60 * 60_000,
} as const;

const SHORT_STEP_MS = 5_000;
const LONG_STEP_MS = 60_000;
/** A timer can fire a little before the end of its step. */
const EARLY_MS = 100;

/**
 * What happened on this server in the last day: an hour in steps of five seconds, and 24 hours in steps of a minute. It
 * takes at most 1.5 MB, and is empty after a restart.
 */
export class LiveSeries {
  readonly #sources: LiveSources;
  readonly #short: Series;
  readonly #long: Series;
  #timer: ScheduledTimer | undefined;

  constructor(sources: LiveSources) {
    this.#sources = sources;
    this.#short = new Series({ stepMs: SHORT_STEP_MS, lengthMs: LIVE_RANGES["1h"], sources });
    this.#long = new Series({ stepMs: LONG_STEP_MS, lengthMs: LIVE_RANGES["24h"], sources });
  }

  start(): void {
    const now = this.#sources.now();
    const nextStep = (Math.floor(now / SHORT_STEP_MS) + 1) * SHORT_STEP_MS;
    this.#timer = scheduler.setTimeout(
      () => {
        this.record();
        this.start();
      },
      Math.max(EARLY_MS, nextStep - now),
    );
    this.#timer.unref();
  }

  stop(): void {
    this.#timer?.close();
  }

  /** At the end of each step. */
  record(): void {
    const now = this.#sources.now();
    this.#short.record(now);
    this.#long.record(now);
  }

  /** Of the last 15 minutes, and requests per second of the last step. */
  recent(): { readonly latencies: Float64Array; readonly requestsPerSecond: number } {
    return this.#short.recent(LIVE_RANGES["15m"], this.#sources.now());
  }

  read(range: keyof typeof LIVE_RANGES) {
    const lengthMs = LIVE_RANGES[range];
    const series = lengthMs <= LIVE_RANGES["1h"] ? this.#short : this.#long;
    return series.read(lengthMs, this.#sources.now());
  }
}

interface SeriesOptions {
  readonly stepMs: number;
  readonly lengthMs: number;
  readonly sources: LiveSources;
}

/** What happened in one step. */
interface Row {
  /** The number of the step, counted from the epoch. */
  readonly step: number;
  readonly requests: OutcomeTotals;
  readonly latencies: Uint32Array;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly connections: number;
}

/** One row for each step, in a ring. A step in which nothing was recorded has no row. */
class Series {
  readonly #options: SeriesOptions;
  readonly #rows: (Row | undefined)[];
  /** Of all requests up to the last row. */
  #recordedTotals: OutcomeTotals;
  #recordedLatencies: Float64Array;
  #nextStep: number;

  constructor(options: SeriesOptions) {
    const { stepMs, lengthMs, sources } = options;
    this.#options = options;
    this.#rows = Array<Row | undefined>(lengthMs / stepMs).fill(undefined);
    this.#recordedTotals = sources.requests.totals();
    this.#recordedLatencies = sources.requests.latencies();
    this.#nextStep = this.#stepAt(sources.now());
  }

  /** Adds the row of the step that has ended, unless it is there already. */
  record(now: number): void {
    const step = this.#stepAt(now + EARLY_MS) - 1;
    // The clock was set back: the steps from there on are recorded again.
    if (step < this.#nextStep - 1) this.#nextStep = step;
    if (step < this.#nextStep) return;
    this.#nextStep = step + 1;
    const { requests, connections } = this.#options.sources;
    const [totals, earlierTotals] = [requests.totals(), this.#recordedTotals];
    const [counts, earlierCounts] = [requests.latencies(), this.#recordedLatencies];
    const latencies = Uint32Array.from(counts, (count, i) => count - (earlierCounts[i] ?? 0));
    this.#rows[step % this.#rows.length] = {
      step,
      requests: byOutcome((outcome) => totals[outcome] - earlierTotals[outcome]),
      latencies,
      ...quantilesOf(latencies),
      connections: connections(),
    };
    this.#recordedTotals = totals;
    this.#recordedLatencies = counts;
  }

  /** Values of consecutive steps, the latest last; null where there is no data. Latencies are milliseconds. */
  read(lengthMs: number, now: number) {
    const { stepMs } = this.#options;
    const count = lengthMs / stepMs;
    const end = Math.max(this.#stepAt(now), this.#nextStep);
    const steps = Array.from({ length: count }, (_, i) => end - count + i);
    const rows = steps.map((step) => this.#rowOf(step));
    const values = (of: (row: Row) => number | null) => rows.map((row) => (row ? of(row) : null));
    const requests = byOutcome((outcome) => values((row) => row.requests[outcome]));
    const totals = byOutcome((outcome) => sumOf(requests[outcome]));
    return {
      step: stepMs / 1000,
      times: steps.map((step) => ((step + 1) * stepMs) / 1000),
      requests,
      p50: values((row) => row.p50),
      p99: values((row) => row.p99),
      connections: values((row) => row.connections),
      totals: { requests: sumOf(Object.values(totals)), ...totals, ...quantilesOf(latenciesOf(rows)) },
    };
  }

  recent(lengthMs: number, now: number) {
    const { stepMs } = this.#options;
    const count = lengthMs / stepMs;
    const last = Math.max(this.#stepAt(now), this.#nextStep) - 1;
    const rows = Array.from({ length: count }, (_, i) => this.#rowOf(last - i));
    const [lastRow] = rows;
    const requests = lastRow ? sumOf(Object.values(lastRow.requests)) : 0;
    return { latencies: latenciesOf(rows), requestsPerSecond: (requests * 1_000) / stepMs };
  }

  #stepAt(now: number): number {
    return Math.floor(now / this.#options.stepMs);
  }

  #rowOf(step: number): Row | undefined {
    const row = this.#rows[step % this.#rows.length];
    return row?.step === step ? row : undefined;
  }
}

function quantilesOf(latencies: Float64Array | Uint32Array) {
  return {
    p50: latencyQuantile(latencies, 0.5) ?? null,
    p99: latencyQuantile(latencies, 0.99) ?? null,
  };
}

function latenciesOf(rows: readonly (Row | undefined)[]): Float64Array {
  const sums = new Float64Array(LATENCY_BUCKETS);
  for (const row of rows) row?.latencies.forEach((count, i) => (sums[i] = (sums[i] ?? 0) + count));
  return sums;
}

function sumOf(values: Values): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
}

function byOutcome<T>(of: (outcome: keyof OutcomeTotals) => T): Readonly<Record<keyof OutcomeTotals, T>> {
  return {
    success: of("success"),
    clientError: of("clientError"),
    limited: of("limited"),
    banned: of("banned"),
    serverError: of("serverError"),
  };
}
