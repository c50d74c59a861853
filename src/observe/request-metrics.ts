import { Unavailable } from "../api/errors.ts";
import { ABORTED_RESPONSE } from "../api/responses.ts";
import { AUTH_FAILURES, isPrincipal } from "../domain/api-keys.ts";
import { PLANS } from "../domain/key-fields.ts";
import { HEALTH_PATH } from "../domain/constants.ts";
import { type ScheduledTimer, scheduler } from "../runtime/scheduler.ts";
import type { ProtocolErrorStatus } from "../http1/index.ts";
import { DURATION_BOUNDS, Histogram, latencyHistogram, sumOfCounts } from "./histogram.ts";
import type { RequestObserver, RequestRecord } from "./request-record.ts";

const PLAN_LABELS = [...PLANS, "anonymous"] as const;
const FAILURE_REASONS = [...AUTH_FAILURES, "unavailable"] as const;

export const OUTCOMES = ["success", "clientError", "limited", "banned", "serverError"] as const;
/** Counts of requests since the start, health checks excluded. */
export type OutcomeTotals = Readonly<Record<(typeof OUTCOMES)[number], number>>;

/** The client sent what HTTP/1.1 has as an option, or another version: 501 and 505 are no fault of the server. */
const UNSUPPORTED: readonly number[] = [501, 505] satisfies ProtocolErrorStatus[];

function outcomeOf(status: number): keyof OutcomeTotals {
  if (status < 400) return "success";
  return status < 500 || UNSUPPORTED.includes(status) ? "clientError" : "serverError";
}

/** The responses to the requests of an operation, by status, and how long they took. */
class OperationFigures {
  readonly responses: Map<number, number>;
  readonly durations = latencyHistogram();

  /** The series of these statuses exist from the start. If one began at 1, `rate` and `increase` would miss that 1. */
  constructor(statuses: readonly number[]) {
    this.responses = new Map(statuses.map((status) => [status, 0]));
  }

  countResponse(status: number): void {
    this.responses.set(status, (this.responses.get(status) ?? 0) + 1);
  }
}

interface RequestMetricsOptions {
  /** The operations, each with the statuses that it can respond with. */
  readonly operations: ReadonlyMap<string, readonly number[]>;
  /** Distinguishes requests of the API from requests for pages. */
  readonly isApiPath: (path: string) => boolean;
}

/** Counts every request: `bun bench/metrics.ts` shows 0.16 µs a request. prom-client took 1.3 µs for the same. */
export class RequestMetrics {
  readonly #isApiPath: RequestMetricsOptions["isApiPath"];
  readonly #operations: ReadonlyMap<string, OperationFigures>;
  /** Requests of the API that were rejected before they were routed, or whose path or method does not exist. */
  readonly #none = new OperationFigures([400, 401, 404, 405, 408, 429, 500, 503]);
  readonly #page = new OperationFigures([200, 304, 404, 429]);
  readonly #health = new OperationFigures([200, 503]);
  readonly decisions = byLabel(PLAN_LABELS, () => ({ allowed: 0, limited: 0, banned: 0 }));
  /** The failures of authentication by their reason. */
  readonly failures = byLabel(FAILURE_REASONS, () => 0);

  constructor({ operations, isApiPath }: RequestMetricsOptions) {
    this.#isApiPath = isApiPath;
    this.#operations = new Map([...operations].map(([id, statuses]) => [id, new OperationFigures(statuses)]));
  }

  readonly observe: RequestObserver = (record, { status }) => {
    const { principal, decision, durationMs } = record;
    const figures = this.#figuresOf(record);
    if (status !== ABORTED_RESPONSE.status) figures.countResponse(status);
    figures.durations.observe(durationMs / 1000);
    if (decision) this.decisions[isPrincipal(principal) ? principal.plan : "anonymous"][decision.outcome]++;
    if (principal instanceof Unavailable) this.failures.unavailable++;
    else if (typeof principal === "string") this.failures[principal]++;
  };

  readonly countProtocolError = (status: ProtocolErrorStatus): void => {
    this.#none.countResponse(status);
  };

  /** The figures of all requests, by the label that metrics have for an operation. */
  byOperation(): readonly (readonly [label: string, figures: OperationFigures])[] {
    return [...this.#operations, ["none", this.#none], ["page", this.#page], ["health", this.#health]];
  }

  totals(): OutcomeTotals {
    const totals = byLabel(OUTCOMES, () => 0);
    for (const { responses } of [...this.#operations.values(), this.#none, this.#page]) {
      for (const [status, count] of responses) totals[outcomeOf(status)] += count;
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
    return sumOfCounts([...this.#operations.values()].map(({ durations }) => durations.counts));
  }

  #figuresOf({ operation, principal, request: { path } }: RequestRecord): OperationFigures {
    if (operation !== undefined) return this.#operations.get(operation) ?? this.#none;
    if (principal !== undefined || this.#isApiPath(path)) return this.#none;
    return path === HEALTH_PATH ? this.#health : this.#page;
  }
}

export function byLabel<T extends string, V>(labels: readonly T[], valueOf: (label: T) => V): Record<T, V> {
  return Object.fromEntries(labels.map((label) => [label, valueOf(label)])) as Record<T, V>;
}

type AdapterName = "SQLite" | "PostgreSQL" | "memory" | "Valkey";

interface OtherAdapters {
  /** What this adapter cannot be available without. */
  readonly uses?: AdapterMonitor;
  /** What takes over while this adapter is unavailable. */
  readonly spare?: AdapterMonitor;
}

/**
 * The figures for operators about the adapter that stores the data, or about the one that counts for the rate limits.
 */
export class AdapterMonitor {
  #isAvailable = true;
  /** The duration of the last request that it responded to; undefined before the first. */
  latencyMs: number | undefined;
  /** Whether commits wait for a synchronous standby that is away, so that every write fails. */
  waitsForStandby = false;
  readonly durations = new Histogram(DURATION_BOUNDS);

  constructor(
    readonly name: AdapterName,
    private readonly others: OtherAdapters = {},
  ) {}

  get isAvailable(): boolean {
    return this.#isAvailable && this.others.uses?.isAvailable !== false;
  }

  /** Whether requests are served, by this adapter or by its spare. */
  get isServing(): boolean {
    return this.isAvailable || this.others.spare?.isAvailable === true;
  }

  set isAvailable(isAvailable: boolean) {
    this.#isAvailable = isAvailable;
  }

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
