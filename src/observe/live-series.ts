import { MINUTE_MS } from "../text/time-units.ts";
import { byOutcome, LIVE_RANGE_MS, type LiveRange, type OutcomeTotals, sum } from "../domain/live-series.ts";
import type { RequestMetrics } from "./request-metrics.ts";
import { quantilesOf, sumOfCounts } from "./histogram.ts";
import { BoundedMap } from "../runtime/bounded-map.ts";
import { repeat, type RepeatedWork } from "../runtime/repeat.ts";

interface LiveSources {
  readonly requests: Pick<RequestMetrics, "totals" | "latencies">;
  readonly connections: () => number;
  /** The time in milliseconds since the epoch. */
  readonly now: () => number;
}

const SHORT_STEP_MS = 5_000;
const LONG_STEP_MS = MINUTE_MS;
/** How early a timer may fire before the end of its step. */
const EARLY_MS = 100;

/**
 * The figures of this server: an hour in steps of five seconds, and two days in steps of a minute, so that a day can be
 * compared with the one before. They take at most 2.5 MB, and are lost at a restart.
 */
export class LiveSeries {
  readonly #sources: LiveSources;
  readonly #short: Series;
  readonly #long: Series;
  #recording: RepeatedWork | undefined;

  constructor(sources: LiveSources) {
    this.#sources = sources;
    this.#short = new Series(sources, SHORT_STEP_MS, LIVE_RANGE_MS["1h"]);
    this.#long = new Series(sources, LONG_STEP_MS, 2 * LIVE_RANGE_MS["24h"]);
  }

  start(): void {
    const untilNextStep = () => Math.max(EARLY_MS, SHORT_STEP_MS - (this.#sources.now() % SHORT_STEP_MS));
    this.#recording = repeat(untilNextStep(), async () => {
      this.record();
      return untilNextStep();
    });
  }

  stop(): void {
    void this.#recording?.close();
  }

  record(): void {
    this.#short.record();
    this.#long.record();
  }

  /** Adds figures of a period before the start: those of sample data. */
  fillPast(lengthMs: number, figuresOf: FiguresOf): void {
    for (const series of [this.#short, this.#long]) series.fillPast(lengthMs, figuresOf);
  }

  /** The latencies of the last 15 minutes, and the requests per second of the last step. */
  recent(): { readonly latencies: Float64Array; readonly requestsPerSecond: number } {
    const { rows } = this.#short.last(LIVE_RANGE_MS["15m"]);
    const requests = sum(Object.values(rows.at(-1)?.requests ?? {}));
    return { latencies: latenciesOf(rows), requestsPerSecond: (requests * 1_000) / SHORT_STEP_MS };
  }

  /** The values of consecutive steps, the latest last; null for a step without data. */
  read(range: LiveRange) {
    const lengthMs = LIVE_RANGE_MS[range];
    const series = lengthMs <= LIVE_RANGE_MS["1h"] ? this.#short : this.#long;
    const { times, rows } = series.last(lengthMs);
    const values = (of: (row: Row) => number | null) => rows.map((row) => (row ? of(row) : null));
    const long = 2 * lengthMs <= LIVE_RANGE_MS["1h"] ? this.#short : this.#long;
    const before = long.last(lengthMs, lengthMs);
    return {
      step: series.stepMs / 1000,
      times,
      requests: byOutcome((outcome) => values((row) => row.requests[outcome])),
      p50: values((row) => row.p50),
      p99: values((row) => row.p99),
      connections: values((row) => row.connections),
      totals: totalsOf(rows),
      before: before.isWhole ? totalsOf(before.rows) : null,
    };
  }
}

interface Figures {
  readonly requests: OutcomeTotals;
  /** The counts of `latencyHistogram`. */
  readonly latencies: Uint32Array;
  readonly connections: number;
}

/** The figures of a step, by its beginning and its length in milliseconds. */
export type FiguresOf = (startsAt: number, stepMs: number) => Figures;

/** The figures of one step. Durations are in milliseconds. */
interface Row extends Figures {
  readonly p50: number | null;
  readonly p99: number | null;
}

class Series {
  /** The rows by the number of their step, counted from the epoch. A step without a recording has no row. */
  readonly #rows: BoundedMap<number, Row>;
  readonly #maxRows: number;
  /** The last step that ended before the figures begin. */
  #stepBefore: number;
  #lastStep: number;
  /** The totals of all requests up to the last row. */
  #totals: OutcomeTotals;
  #latencies: Float64Array;

  constructor(
    private readonly sources: LiveSources,
    readonly stepMs: number,
    lengthMs: number,
  ) {
    this.#maxRows = lengthMs / stepMs;
    this.#rows = new BoundedMap(this.#maxRows);
    this.#stepBefore = this.#endedStep(0);
    this.#lastStep = this.#stepBefore;
    this.#totals = sources.requests.totals();
    this.#latencies = sources.requests.latencies();
  }

  /** Adds the row of the step that has ended, unless it exists. */
  record(): void {
    const step = this.#endedStep(EARLY_MS);
    if (step === this.#lastStep) return;
    this.#lastStep = step;
    const { requests, connections } = this.sources;
    const [totals, earlierTotals] = [requests.totals(), this.#totals];
    const [counts, earlierCounts] = [requests.latencies(), this.#latencies];
    const latencies = Uint32Array.from(counts, (count, i) => count - (earlierCounts[i] ?? 0));
    this.#rows.set(step, {
      requests: byOutcome((outcome) => totals[outcome] - earlierTotals[outcome]),
      latencies,
      ...quantilesOf(latencies),
      connections: connections(),
    });
    this.#totals = totals;
    this.#latencies = counts;
  }

  fillPast(lengthMs: number, figuresOf: FiguresOf): void {
    const recorded = [...this.#rows];
    this.#rows.clear();
    const last = this.#stepBefore;
    this.#stepBefore = last - Math.min(lengthMs / this.stepMs, this.#maxRows - recorded.length);
    for (let step = this.#stepBefore + 1; step <= last; step++) {
      const figures = figuresOf(step * this.stepMs, this.stepMs);
      this.#rows.set(step, { ...figures, ...quantilesOf(figures.latencies) });
    }
    for (const [step, row] of recorded) this.#rows.set(step, row);
  }

  /**
   * The last steps of a period that ended `agoMs` ago, the latest last: when each ends, in Unix seconds, and its row.
   * The period is whole if the recording began before it.
   */
  last(lengthMs: number, agoMs = 0) {
    const first = Math.max(this.#endedStep(0), this.#lastStep) + 1 - (lengthMs + agoMs) / this.stepMs;
    const steps = Array.from({ length: lengthMs / this.stepMs }, (_, i) => first + i);
    return {
      times: steps.map((step) => ((step + 1) * this.stepMs) / 1000),
      rows: steps.map((step) => this.#rows.get(step)),
      isWhole: this.#stepBefore < first,
    };
  }

  #endedStep(earlyMs: number): number {
    return Math.floor((this.sources.now() + earlyMs) / this.stepMs) - 1;
  }
}

function totalsOf(rows: readonly (Row | undefined)[]) {
  const totals = byOutcome((outcome) => sum(rows.map((row) => row?.requests[outcome] ?? null)));
  return { requests: sum(Object.values(totals)), ...totals, ...quantilesOf(latenciesOf(rows)) };
}

function latenciesOf(rows: readonly (Row | undefined)[]): Float64Array {
  return sumOfCounts(rows.flatMap((row) => row?.latencies ?? []));
}
