import { MINUTE_MS } from "../text/time-units.ts";
import { type ScheduledTimer, scheduler } from "../runtime/scheduler.ts";
import { withTimeout } from "../runtime/timeout.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";

export interface LineOutput {
  /** Writes some of the bytes, and returns how many. */
  write(bytes: Uint8Array): Promise<number>;
  /** Called at regular times, before lines are written. */
  prepare(): Promise<void>;
  close(): Promise<void>;
}

export interface LineWriterOptions {
  readonly output: LineOutput;
  /** Called for the first of consecutive failures. What could not be written is written again. */
  readonly onFailure: (error: unknown) => void;
  readonly onRecovery: () => void;
  /** Called once a minute at most, with the number of lines since the last call. */
  readonly onDropped: (lines: number) => void;
  /** The number of characters that may wait to be written. */
  readonly maxWaiting?: number;
  readonly writeEveryMs?: number;
}

const WRITE_EVERY_MS = 500;
/** Once this many characters wait, they are written without waiting for the timer. */
const WRITE_LENGTH = 64 * 1024;
const MAX_WAITING = 4 * 1024 * 1024;
/** How often dropped lines are reported. */
const REPORT_EVERY_MS = MINUTE_MS;
/**
 * The longest time that closing takes. Together with the time for requests in progress, it is shorter than the time
 * that a process has to stop.
 */
const CLOSE_TIMEOUT_MS = 1_000;

/** Writes lines in the background. A line costs a request the same whether the output is fast, slow or full. */
export class LineWriter {
  readonly #options: LineWriterOptions;
  readonly #maxWaiting: number;
  readonly #timer: ScheduledTimer;
  #waiting = "";
  /** The bytes that are being written. `#written` of them are done. */
  #chunk = new Uint8Array();
  #written = 0;
  #writing: Promise<void> | undefined;
  readonly #failures: FailureReporter;
  /** The number of lines that were never written. */
  dropped = 0;
  #reported = 0;
  #silentUntil = 0;

  constructor(options: LineWriterOptions) {
    const { onFailure, onRecovery, maxWaiting = MAX_WAITING, writeEveryMs = WRITE_EVERY_MS } = options;
    this.#options = options;
    this.#maxWaiting = maxWaiting;
    this.#failures = new FailureReporter(onFailure, onRecovery);
    this.#timer = scheduler.setInterval(() => {
      this.#start({ isTimer: true });
      this.#reportDropped();
    }, writeEveryMs);
    this.#timer.unref();
  }

  /** Adds a line, which ends with a line feed. */
  write(line: string): void {
    if (this.#waiting.length + line.length > this.#maxWaiting) {
      this.dropped++;
      return;
    }
    this.#waiting += line;
    if (this.#waiting.length >= WRITE_LENGTH && !this.#failures.isFailing) this.#start({ isTimer: false });
  }

  /** Writes the lines that wait, for a bounded time. */
  async close(): Promise<void> {
    this.#timer.close();
    await withTimeout(CLOSE_TIMEOUT_MS, this.#finish()).catch(() => {});
    this.#silentUntil = 0;
    this.#reportDropped();
    await this.#options.output.close().catch((error: unknown) => this.#failures.failed(error));
  }

  async #finish(): Promise<void> {
    await this.#writing;
    await this.#run();
  }

  #start({ isTimer }: { isTimer: boolean }): void {
    this.#writing ??= this.#run({ isTimer }).finally(() => (this.#writing = undefined));
  }

  async #run({ isTimer = false } = {}): Promise<void> {
    try {
      if (isTimer) await this.#prepare();
      await this.#writeWaiting();
      this.#failures.succeeded();
    } catch (error) {
      this.#failures.failed(error);
    }
  }

  async #prepare(): Promise<void> {
    // The output may add lines, which must not start a second run: `#writing` is assigned after the first await.
    await undefined;
    await this.#options.output.prepare();
  }

  /** Writes the lines that wait. After an error, the next call continues after the last byte that was written. */
  async #writeWaiting(): Promise<void> {
    for (;;) {
      if (this.#written === this.#chunk.length) {
        if (this.#waiting === "") return;
        this.#chunk = Buffer.from(this.#waiting);
        this.#waiting = "";
        this.#written = 0;
      }
      this.#written += await this.#options.output.write(this.#chunk.subarray(this.#written));
    }
  }

  #reportDropped(): void {
    const now = scheduler.now();
    if (this.dropped === this.#reported || now < this.#silentUntil) return;
    this.#options.onDropped(this.dropped - this.#reported);
    this.#reported = this.dropped;
    this.#silentUntil = now + REPORT_EVERY_MS;
  }
}
