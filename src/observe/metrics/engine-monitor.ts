import { DURATION_BOUNDS, Histogram } from "./histogram.ts";

export type EngineName = "SQLite" | "PostgreSQL" | "memory" | "Valkey";

/** What operators see of the engine that stores the data, or of the one that counts for the rate limits. */
export class EngineMonitor {
  isAvailable = true;
  /** Of the last request that the engine responded to; undefined before the first. */
  latencyMs: number | undefined;
  readonly durations = new Histogram(DURATION_BOUNDS);
  /** Requests that wait for the engine. */
  queueLength: () => number = () => 0;

  constructor(readonly engine: EngineName) {}

  responded(ms: number): void {
    this.latencyMs = ms;
    this.durations.observe(ms / 1000);
  }
}

const BATCH_SIZE_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** Transactions of several writes. */
export class CommitMonitor {
  readonly sizes = new Histogram(BATCH_SIZE_BOUNDS);
  readonly durations = new Histogram(DURATION_BOUNDS);
  /** Writes that wait for the next transaction. */
  queueLength: () => number = () => 0;

  committed(writes: number, ms: number): void {
    this.sizes.observe(writes);
    this.durations.observe(ms / 1000);
  }
}
