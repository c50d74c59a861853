import { DURATION_BOUNDS, Histogram } from "./histogram.ts";

/** The monitor of the adapter that stores the data. */
export type DatabaseMonitor = AdapterMonitor<"SQLite" | "PostgreSQL">;
/** The monitor of the adapter that counts for the rate limits. */
export type LimiterMonitor = AdapterMonitor<"memory" | "PostgreSQL" | "Valkey">;

interface OtherAdapters {
  /** What this adapter cannot be available without. */
  readonly uses?: AdapterMonitor;
  /** What takes over while this adapter is unavailable. */
  readonly spare?: AdapterMonitor;
}

/** The figures for operators about an adapter. */
export class AdapterMonitor<Name extends string = string> {
  #isAvailable = true;
  /** The duration of the last request that it responded to; undefined before the first. */
  latencyMs: number | undefined;
  /** Whether commits wait for a synchronous standby that is away, so that every write fails. */
  waitsForStandby = false;
  readonly durations = new Histogram(DURATION_BOUNDS);

  constructor(
    readonly name: Name,
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
