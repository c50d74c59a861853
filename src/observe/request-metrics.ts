import { Unavailable } from "../api/errors.ts";
import { type ApiKeyPrincipal, type AuthFailure, isPrincipal } from "../domain/api-keys.ts";
import { PLANS } from "../domain/key-fields.ts";
import { HEALTH_PATH } from "../domain/constants.ts";
import type { Decision } from "../domain/rate-limit.ts";
import { OPERATION_IDS, type OperationId } from "../domain/operation-ids.ts";
import { type ScheduledTimer, scheduler } from "../runtime/event-loop.ts";
import type { ProtocolErrorStatus, Request, Response } from "../http1/index.ts";
import type { Trace } from "./trace.ts";

/** The facts about one request, for metrics, usage history and the access log. */
export class RequestRecord {
  /** The API key, or why the request has none; undefined for a page, which needs no key. */
  principal: ApiKeyPrincipal | AuthFailure | undefined;
  /** Whether authentication or the rate limiter returned a promise, so that other work ran in between. */
  hasWaited = false;
  /** The decision of the rate limiter; undefined if it failed, and for /healthz, which is not counted. */
  decision: Decision | undefined;
  /** The operation; undefined for a page, an unknown path, and a request that was rejected before it was routed. */
  operation: OperationId | undefined;
  /** The time from the head of the request to the response. */
  durationMs = 0;
  /** The spans; undefined if the request is not traced. */
  trace: Trace | undefined;

  constructor(
    readonly request: Request,
    readonly requestId: string,
  ) {}

  get keyId(): number | null {
    const { principal } = this;
    return isPrincipal(principal) ? principal.keyId : null;
  }

  /** Whether a rate limit bounds the number of such requests. Health checks and preflights have none. */
  isCounted({ status }: Response): boolean {
    return this.decision !== undefined || (status >= 500 && this.request.path !== HEALTH_PATH);
  }
}

/**
 * Called once for each request, when its response is ready. If the client disconnected before the body had arrived, the
 * status is 499 and nothing is sent. An observer must not throw, and must not keep the record.
 */
export type RequestObserver = (record: RequestRecord, response: Response) => void;

/**
 * The label `none` is for a request of the API that was rejected before it was routed, or whose path or method does not
 * exist.
 */
export const OPERATION_LABELS = [...OPERATION_IDS, "none", "page", "health"] as const;
export type OperationLabel = (typeof OPERATION_LABELS)[number];

const PLAN_LABELS = [...PLANS, "anonymous"] as const;
const FAILURE_REASONS = [
  "missing_api_key",
  "invalid_api_key",
  "disabled_api_key",
  "expired_api_key",
  "staging_api_key",
  "production_api_key",
  "unavailable",
] as const;
/** The status of a request whose client disconnected before the response was sent. */
const ABORTED = 499;

export const OUTCOMES = ["success", "clientError", "limited", "banned", "serverError"] as const;
/** Counts of requests since the start, health checks excluded. */
export type OutcomeTotals = Readonly<Record<(typeof OUTCOMES)[number], number>>;

/** Counts every request: `bun bench/metrics.ts` shows 0.16 µs a request. prom-client took 1.3 µs for the same. */
export class RequestMetrics {
  readonly operations = byLabel(OPERATION_LABELS, () => ({
    responses: new Map<number, number>(),
    durations: latencyHistogram(),
  }));
  readonly decisions = byLabel(PLAN_LABELS, () => ({ allowed: 0, limited: 0, banned: 0 }));
  /** The failures of authentication by their reason. */
  readonly failures = byLabel(FAILURE_REASONS, () => 0);

  /** `isApiPath` distinguishes requests of the API from requests for pages. */
  constructor(private readonly isApiPath: (path: string) => boolean) {}

  readonly observe: RequestObserver = (record, { status }) => {
    const { principal, decision, durationMs } = record;
    const label = record.operation ?? this.#labelOf(record);
    if (status !== ABORTED) this.#countResponse(label, status);
    this.operations[label].durations.observe(durationMs / 1000);
    if (decision) this.decisions[isPrincipal(principal) ? principal.plan : "anonymous"][decision.outcome]++;
    if (principal instanceof Unavailable) this.failures.unavailable++;
    else if (typeof principal === "string") this.failures[principal]++;
  };

  readonly countProtocolError = (status: ProtocolErrorStatus): void => {
    this.#countResponse("none", status);
  };

  totals(): OutcomeTotals {
    const totals = byLabel(OUTCOMES, () => 0);
    for (const label of OPERATION_LABELS) {
      if (label === "health") continue;
      for (const [status, count] of this.operations[label].responses)
        totals[status < 400 ? "success" : status < 500 ? "clientError" : "serverError"] += count;
    }
    for (const { limited, banned } of Object.values(this.decisions)) {
      totals.limited += limited;
      totals.banned += banned;
      totals.clientError -= limited + banned;
    }
    return totals;
  }

  /**
   * The latencies of all operations. They include only requests that were allowed and routed, because rejections are
   * much faster.
   */
  latencies(): Float64Array {
    return sumOfCounts(OPERATION_IDS.map((operation) => this.operations[operation].durations.counts));
  }

  #labelOf({ principal, request: { path } }: RequestRecord): OperationLabel {
    if (principal !== undefined || this.isApiPath(path)) return "none";
    return path === HEALTH_PATH ? "health" : "page";
  }

  #countResponse(label: OperationLabel, status: number): void {
    const { responses } = this.operations[label];
    responses.set(status, (responses.get(status) ?? 0) + 1);
  }
}

export function byLabel<T extends string, V>(labels: readonly T[], valueOf: (label: T) => V): Record<T, V> {
  return Object.fromEntries(labels.map((label) => [label, valueOf(label)])) as Record<T, V>;
}

/** Counts values by their size. The quantiles of several servers can be computed from the sums of their counts. */
export class Histogram {
  readonly bounds: Float64Array;
  /** The first element counts the values up to the first bound, and the last one those above every bound. */
  readonly counts: Float64Array;
  sum = 0;

  /** `shownBounds` are the bounds that metrics show: some or all of them. */
  constructor(
    bounds: readonly number[],
    readonly shownBounds = bounds,
  ) {
    this.bounds = Float64Array.from(bounds);
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let bucket = 0;
    let end = bounds.length;
    while (bucket < end) {
      const middle = (bucket + end) >>> 1;
      if (value > (bounds[middle] ?? 0)) bucket = middle + 1;
      else end = middle;
    }
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    this.sum += value;
  }
}

/**
 * The bounds that metrics show, in seconds, for requests and for what they wait for: a page from memory takes
 * microseconds.
 */
const DURATION_BOUNDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;

/** The preferred numbers R20 (ISO 3). Each is about an eighth more than the one before. */
const STEPS = [
  1, 1.12, 1.25, 1.4, 1.6, 1.8, 2, 2.24, 2.5, 2.8, 3.15, 3.55, 4, 4.5, 5, 5.6, 6.3, 7.1, 8, 9,
] as const;

/**
 * The bounds of latencies, from a microsecond to ten seconds. With them a quantile is exact to 7 %; `DURATION_BOUNDS`
 * are too few for that.
 */
const LATENCY_BOUNDS = [
  ...[-6, -5, -4, -3, -2, -1, 0].flatMap((exponent) => STEPS.map((step) => Number(`${step}e${exponent}`))),
  10,
];
export const LATENCY_BUCKETS = LATENCY_BOUNDS.length + 1;

/** A histogram of durations in seconds. Metrics show only a few of its bounds. */
export function latencyHistogram(): Histogram {
  return new Histogram(LATENCY_BOUNDS, DURATION_BOUNDS);
}

/**
 * The median and the 99th percentile, in milliseconds, from the counts of such histograms; null if nothing was counted.
 */
export function quantilesOf(counts: Float64Array | Uint32Array) {
  return { p50: quantileOf(counts, 0.5), p99: quantileOf(counts, 0.99) };
}

function quantileOf(counts: Float64Array | Uint32Array, quantile: number): number | null {
  let total = 0;
  for (const count of counts) total += count;
  if (total === 0) return null;
  const rank = Math.max(1, Math.ceil(total * quantile));
  let bucket = 0;
  for (let seen = counts[0] ?? 0; seen < rank; seen += counts[bucket] ?? 0) bucket++;
  const from = LATENCY_BOUNDS[bucket - 1] ?? 0;
  const to = LATENCY_BOUNDS[bucket] ?? from;
  return ((from + to) / 2) * 1_000;
}

export function sumOfCounts(each: readonly (Float64Array | Uint32Array)[]): Float64Array {
  const sums = new Float64Array(LATENCY_BUCKETS);
  for (const counts of each) counts.forEach((count, i) => (sums[i] = (sums[i] ?? 0) + count));
  return sums;
}

type AdapterName = "SQLite" | "PostgreSQL" | "memory" | "Valkey";

/**
 * The figures for operators about the adapter that stores the data, or about the one that counts for the rate limits.
 */
export class AdapterMonitor {
  isAvailable = true;
  /** The duration of the last request that it responded to; undefined before the first. */
  latencyMs: number | undefined;
  readonly durations = new Histogram(DURATION_BOUNDS);

  constructor(readonly name: AdapterName) {}

  responded(ms: number): void {
    this.latencyMs = ms;
    this.durations.observe(ms / 1000);
  }
}

const BATCH_SIZE_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** Measures transactions of several writes. */
export class CommitMonitor {
  readonly sizes = new Histogram(BATCH_SIZE_BOUNDS);
  readonly durations = new Histogram(DURATION_BOUNDS);

  /** `adapter` is the monitor of a database whose only requests are these transactions. */
  constructor(private readonly adapter?: AdapterMonitor) {}

  readonly committed = (writes: number, ms: number): void => {
    this.sizes.observe(writes);
    this.durations.observe(ms / 1000);
    this.adapter?.responded(ms);
  };
}

/** The bounds of the delays, in seconds. */
const DELAY_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const SAMPLE_EVERY_MS = 20;
/** The length of a period. The longest delay is that of the current period and the one before. */
const PERIOD_MS = 30_000;

/** Measures how much later than requested a timer fires. A new request waits as long before it is processed. */
export class EventLoopDelay {
  readonly seconds = new Histogram(DELAY_BOUNDS);
  #lastAt: number;
  #periodEndsAt: number;
  #longest = 0;
  #longestBefore = 0;
  #timer: ScheduledTimer | undefined;

  /** `now` returns milliseconds. */
  constructor(private readonly now = () => scheduler.now()) {
    this.#lastAt = now();
    this.#periodEndsAt = this.#lastAt + PERIOD_MS;
  }

  start(): void {
    this.#lastAt = this.now();
    this.#timer = scheduler.setInterval(() => this.sample(), SAMPLE_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    this.#timer?.close();
  }

  /** Called by the timer. */
  sample(): void {
    const now = this.now();
    const delay = Math.max(0, now - this.#lastAt - SAMPLE_EVERY_MS) / 1000;
    this.#lastAt = now;
    this.seconds.observe(delay);
    if (now >= this.#periodEndsAt) {
      this.#longestBefore = this.#longest;
      this.#longest = 0;
      this.#periodEndsAt = now + PERIOD_MS;
    }
    this.#longest = Math.max(this.#longest, delay);
  }

  /** The longest delay of the last 30 to 60 seconds. */
  get longestSeconds(): number {
    return Math.max(this.#longest, this.#longestBefore);
  }
}
