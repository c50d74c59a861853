import { LATENCY_BUCKETS, latencyQuantile } from "./latency-counts.ts";
import type { OutcomeTotals, RequestMetrics } from "./request-metrics.ts";

/** What the series are made of. */
export interface LiveSources {
  readonly requests: Pick<RequestMetrics, "totals" | "latencies">;
  readonly connections: () => number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Values of consecutive steps, the latest last; null where there is no data. */
export interface LiveView {
  readonly stepMs: number;
  /** When each step began, in milliseconds since the epoch. */
  readonly times: readonly number[];
  readonly requests: Readonly<Record<keyof OutcomeTotals, readonly (number | null)[]>>;
  /** In milliseconds, of requests that were allowed and routed. */
  readonly p50: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
  readonly connections: readonly (number | null)[];
  /** Of all steps. */
  readonly totals: OutcomeTotals;
}

export const LIVE_RANGES = {
  "15m": 15 * 60_000,
  "1h": 60 * 60_000,
  "6h": 6 * 60 * 60_000,
  "24h": 24 * 60 * 60_000,
} as const;
export type LiveRange = keyof typeof LIVE_RANGES;

const SHORT_STEP_MS = 5_000;
const LONG_STEP_MS = 60_000;
/** A timer can fire a little before the end of its step. */
const EARLY_MS = 100;

/**
 * What happened on this server in the last day: an hour in steps of five seconds, and 24 hours in steps of a minute. It
 * takes 0.2 MB, and is empty after a restart.
 */
export class LiveSeries {
  readonly #sources: LiveSources;
  readonly #short: Series;
  readonly #long: Series;
  #timer: Timer | undefined;

  constructor(sources: LiveSources) {
    this.#sources = sources;
    this.#short = new Series({ stepMs: SHORT_STEP_MS, lengthMs: LIVE_RANGES["1h"], sources });
    this.#long = new Series({ stepMs: LONG_STEP_MS, lengthMs: LIVE_RANGES["24h"], sources });
  }

  start(): void {
    const now = this.#sources.now();
    const nextStep = (Math.floor(now / SHORT_STEP_MS) + 1) * SHORT_STEP_MS;
    this.#timer = setTimeout(() => {
      this.record();
      this.start();
    }, nextStep - now).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** At the end of each step. */
  record(): void {
    const now = this.#sources.now();
    this.#short.record(now);
    this.#long.record(now);
  }

  read(range: LiveRange): LiveView {
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

const OUTCOMES = ["success", "clientError", "limited", "banned", "serverError"] as const;
const COLUMNS = [...OUTCOMES, "p50", "p99", "connections"] as const;
type Column = (typeof COLUMNS)[number];

/** One row for each step, in a ring. A step in which nothing was recorded has no row. */
class Series {
  readonly #options: SeriesOptions;
  readonly #size: number;
  /** The number of the step in each row, counted from the epoch. */
  readonly #steps: Float64Array;
  readonly #columns: Readonly<Record<Column, Float64Array>>;
  readonly #latencies = new Float64Array(LATENCY_BUCKETS);
  #totals: OutcomeTotals;
  #nextStep: number;

  constructor(options: SeriesOptions) {
    const { stepMs, lengthMs, sources } = options;
    this.#options = options;
    this.#size = lengthMs / stepMs;
    this.#steps = new Float64Array(this.#size).fill(-1);
    const column = () => new Float64Array(this.#size);
    this.#columns = {
      success: column(),
      clientError: column(),
      limited: column(),
      banned: column(),
      serverError: column(),
      p50: column(),
      p99: column(),
      connections: column(),
    };
    this.#totals = sources.requests.totals();
    this.#latencies.set(sources.requests.latencies);
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
    const totals = requests.totals();
    const row = step % this.#size;
    this.#steps[row] = step;
    for (const outcome of OUTCOMES) this.#columns[outcome][row] = totals[outcome] - this.#totals[outcome];
    const latencies = requests.latencies.map((count, i) => count - (this.#latencies[i] ?? 0));
    this.#columns.p50[row] = latencyQuantile(latencies, 0.5) ?? NaN;
    this.#columns.p99[row] = latencyQuantile(latencies, 0.99) ?? NaN;
    this.#columns.connections[row] = connections();
    this.#totals = totals;
    this.#latencies.set(requests.latencies);
  }

  read(lengthMs: number, now: number): LiveView {
    const { stepMs } = this.#options;
    const count = lengthMs / stepMs;
    const end = Math.max(this.#stepAt(now), this.#nextStep);
    const steps = Array.from({ length: count }, (_, i) => end - count + i);
    const values = (column: Column) => steps.map((step) => this.#value(column, step));
    const sum = (column: Column) => values(column).reduce<number>((total, value) => total + (value ?? 0), 0);
    return {
      stepMs,
      times: steps.map((step) => step * stepMs),
      requests: byOutcome(values),
      p50: values("p50"),
      p99: values("p99"),
      connections: values("connections"),
      totals: byOutcome(sum),
    };
  }

  #stepAt(now: number): number {
    return Math.floor(now / this.#options.stepMs);
  }

  #value(column: Column, step: number): number | null {
    const row = step % this.#size;
    const value = this.#columns[column][row] ?? NaN;
    return this.#steps[row] === step && !Number.isNaN(value) ? value : null;
  }
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
