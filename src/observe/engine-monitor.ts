import { DURATION_BOUNDS, Histogram } from "./histogram.ts";

/** The monitor of the engine that stores the data. */
export type DatabaseMonitor = EngineMonitor<"SQLite" | "PostgreSQL">;
/** The monitor of the engine that counts for the rate limits. */
export type LimiterMonitor = EngineMonitor<"memory" | "PostgreSQL">;

/** The figures for operators about an engine. */
export class EngineMonitor<Engine extends string = string> {
  #isAvailable = true;
  /** The duration of the last request that it responded to; undefined before the first. */
  latencyMs: number | undefined;
  /** Whether commits wait for a synchronous standby that is away, so that every write fails. */
  waitsForStandby = false;
  readonly durations = new Histogram(DURATION_BOUNDS);

  constructor(
    readonly engine: Engine,
    /** The engine that this one cannot be available without. */
    private readonly base?: EngineMonitor,
  ) {}

  get isAvailable(): boolean {
    return this.#isAvailable && this.base?.isAvailable !== false;
  }

  set isAvailable(isAvailable: boolean) {
    this.#isAvailable = isAvailable;
  }

  responded(ms: number): void {
    this.latencyMs = ms;
    this.durations.observe(ms / 1000);
  }
}

/** The figures about the log of SQLite. */
export interface SqliteLogMonitor {
  readonly syncs: Histogram;
  bytes(): number;
}

const BATCH_SIZE_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** Measures transactions of several writes. */
export class CommitMonitor {
  readonly sizes = new Histogram(BATCH_SIZE_BOUNDS);
  readonly durations = new Histogram(DURATION_BOUNDS);

  /** `database` is the monitor of a database whose only requests are these transactions. */
  constructor(private readonly database?: EngineMonitor) {}

  readonly committed = (writes: number, ms: number): void => {
    this.sizes.observe(writes);
    this.durations.observe(ms / 1000);
    this.database?.responded(ms);
  };
}
