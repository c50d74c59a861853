import { LATENCY_BUCKETS, latencyQuantile } from "./latency-counts.ts";
import type { OutcomeTotals, RequestMetrics } from "./request-metrics.ts";

/** What the series are made of. */
export interface LiveSources {
  readonly requests: Pick<RequestMetrics, "totals" | "latencies">;
  readonly connections: () => number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

type Values = readonly (number | null)[];

/** Values of consecutive steps, the latest last; null where there is no data. */
export interface LiveView {
  /** The length of a step, in seconds. */
  readonly step: number;
  /** When each step ended, in Unix seconds. */
  readonly times: readonly number[];
  readonly requests: Readonly<Record<keyof OutcomeTotals, Values>>;
  /** In milliseconds, of requests that were allowed and routed. */
  readonly p50: Values;
  readonly p99: Values;
  /** At the end of the step. */
  readonly connections: Values;
  /** Of all steps. */
  readonly totals: OutcomeTotals & {
    readonly requests: number;
    readonly p50: number | null;
    readonly p99: number | null;
  };
}

const LIVE_RANGES = {
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
 * takes at most 2.3 MB, and is empty after a restart.
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
    this.#timer = setTimeout(
      () => {
        this.record();
        this.start();
      },
      Math.max(EARLY_MS, nextStep - now),
    ).unref();
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
  /** The latencies of each row. */
  readonly #latencies: Uint32Array;
  /** Of all requests up to the last row. */
  #recordedTotals: OutcomeTotals;
  readonly #recordedLatencies: Float64Array;
  #nextStep: number;

  constructor(options: SeriesOptions) {
    const { stepMs, lengthMs, sources } = options;
    this.#options = options;
    this.#size = lengthMs / stepMs;
    this.#steps = new Float64Array(this.#size).fill(-1);
    const column = () => new Float64Array(this.#size);
    this.#columns = { ...byOutcome(column), p50: column(), p99: column(), connections: column() };
    this.#latencies = new Uint32Array(this.#size * LATENCY_BUCKETS);
    this.#recordedTotals = sources.requests.totals();
    this.#recordedLatencies = sources.requests.latencies.slice();
    this.#nextStep = this.#stepAt(sources.now());
  }

  /** Adds the row of the step that has ended, unless it is there already. */
  record(now: number): void {
    const step = this.#stepAt(now + EARLY_MS) - 1;
    // The clock was set back: the steps from there on are recorded again.
    if (step < this.#nextStep - 1) this.#nextStep = step;
    if (step < this.#nextStep) return;
    this.#nextStep = step + 1;
    const row = step % this.#size;
    this.#steps[row] = step;
    this.#recordTotals(row);
    this.#recordLatencies(row);
    this.#columns.connections[row] = this.#options.sources.connections();
  }

  #recordTotals(row: number): void {
    const totals = this.#options.sources.requests.totals();
    for (const outcome of OUTCOMES) {
      this.#columns[outcome][row] = totals[outcome] - this.#recordedTotals[outcome];
    }
    this.#recordedTotals = totals;
  }

  #recordLatencies(row: number): void {
    const { latencies } = this.#options.sources.requests;
    const counts = this.#latenciesOf(row);
    for (let i = 0; i < LATENCY_BUCKETS; i++) {
      counts[i] = (latencies[i] ?? 0) - (this.#recordedLatencies[i] ?? 0);
    }
    this.#columns.p50[row] = latencyQuantile(counts, 0.5) ?? NaN;
    this.#columns.p99[row] = latencyQuantile(counts, 0.99) ?? NaN;
    this.#recordedLatencies.set(latencies);
  }

  read(lengthMs: number, now: number): LiveView {
    const { stepMs } = this.#options;
    const count = lengthMs / stepMs;
    const end = Math.max(this.#stepAt(now), this.#nextStep);
    const steps = Array.from({ length: count }, (_, i) => end - count + i);
    const rows = this.#rowsOf(steps);
    const values = (column: Column) => this.#values(column, rows, count);
    const requests = byOutcome(values);
    const totals = byOutcome((outcome) => sumOf(requests[outcome]));
    const latencies = this.#sumOfLatencies(rows.values());
    return {
      step: stepMs / 1000,
      times: steps.map((step) => ((step + 1) * stepMs) / 1000),
      requests,
      p50: values("p50"),
      p99: values("p99"),
      connections: values("connections"),
      totals: {
        requests: sumOf(Object.values(totals)),
        ...totals,
        p50: latencyQuantile(latencies, 0.5) ?? null,
        p99: latencyQuantile(latencies, 0.99) ?? null,
      },
    };
  }

  #stepAt(now: number): number {
    return Math.floor(now / this.#options.stepMs);
  }

  #latenciesOf(row: number): Uint32Array {
    return this.#latencies.subarray(row * LATENCY_BUCKETS, (row + 1) * LATENCY_BUCKETS);
  }

  #sumOfLatencies(rows: Iterable<number>): Float64Array {
    const sums = new Float64Array(LATENCY_BUCKETS);
    for (const row of rows) {
      const start = row * LATENCY_BUCKETS;
      for (let i = 0; i < LATENCY_BUCKETS; i++) sums[i] = (sums[i] ?? 0) + (this.#latencies[start + i] ?? 0);
    }
    return sums;
  }

  /** The rows of those steps that have one, by the index of the step. After a restart there are few. */
  #rowsOf(steps: readonly number[]): ReadonlyMap<number, number> {
    const rows = new Map<number, number>();
    for (const [i, step] of steps.entries()) {
      const row = step % this.#size;
      if (this.#steps[row] === step) rows.set(i, row);
    }
    return rows;
  }

  #values(column: Column, rows: ReadonlyMap<number, number>, count: number): Values {
    const values = Array.from<number | null>({ length: count }).fill(null);
    for (const [i, row] of rows) {
      const value = this.#columns[column][row] ?? NaN;
      if (!Number.isNaN(value)) values[i] = value;
    }
    return values;
  }
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
