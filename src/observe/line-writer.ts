export interface LineOutput {
  /** Writes some of the bytes, and returns how many. */
  write(bytes: Uint8Array): Promise<number>;
  /** Goes on with a new file if the file was renamed or removed. */
  followRotation(): Promise<void>;
  close(): Promise<void>;
}

export interface LineWriterOptions {
  readonly output: LineOutput;
  /** Called once each time that the output begins to fail, and once when it works again. */
  onFailed(error: unknown): void;
  onRecovered(): void;
  /** Called with the number of lines that were dropped since the last call, at most once a minute and at the end. */
  onDropped(lines: number): void;
  /** Characters that wait to be written. */
  readonly maxWaiting?: number;
  readonly writeEveryMs?: number;
  readonly closeTimeoutMs?: number;
}

const WRITE_EVERY_MS = 500;
/** So many characters are written without waiting for the time. */
const WRITE_LENGTH = 64 * 1024;
const MAX_WAITING = 4 * 1024 * 1024;
const REPORT_EVERY_MS = 60_000;
/** With the time that requests in progress have, less than what a process has to stop. */
const CLOSE_TIMEOUT_MS = 1_000;

/** Writes lines behind the requests. A line costs a request the same whether the disk is fast, slow or full. */
export class LineWriter {
  readonly #options: LineWriterOptions;
  readonly #maxWaiting: number;
  readonly #timer: Timer;
  #waiting = "";
  /** What is being written, and how much of it is. */
  #chunk = new Uint8Array();
  #written = 0;
  #writing: Promise<void> | undefined;
  #isFailing = false;
  #dropped = 0;
  #silentUntil = 0;

  constructor(options: LineWriterOptions) {
    const { maxWaiting = MAX_WAITING, writeEveryMs = WRITE_EVERY_MS } = options;
    this.#options = options;
    this.#maxWaiting = maxWaiting;
    this.#timer = setInterval(() => {
      this.#start({ isTimer: true });
      this.#reportDropped();
    }, writeEveryMs);
    this.#timer.unref();
  }

  /** `line` ends with a line feed. */
  write(line: string): void {
    if (this.#waiting.length + line.length > this.#maxWaiting) {
      this.#dropped++;
      return;
    }
    this.#waiting += line;
    if (this.#waiting.length >= WRITE_LENGTH && !this.#isFailing) this.#start({ isTimer: false });
  }

  /** Writes what waits, for a bounded time. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const { output, closeTimeoutMs = CLOSE_TIMEOUT_MS } = this.#options;
    const timeout = Promise.withResolvers<void>();
    const timer = setTimeout(timeout.resolve, closeTimeoutMs);
    await Promise.race([this.#finish(), timeout.promise]);
    clearTimeout(timer);
    this.#silentUntil = 0;
    this.#reportDropped();
    await output.close().catch(this.#options.onFailed);
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
      if (isTimer) await this.#options.output.followRotation();
      await this.#writeWaiting();
      if (this.#isFailing) this.#options.onRecovered();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#options.onFailed(error);
      this.#isFailing = true;
    }
  }

  /** After an error, the next call goes on behind the last byte that was written. */
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
    const now = performance.now();
    if (this.#dropped === 0 || now < this.#silentUntil) return;
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#silentUntil = now + REPORT_EVERY_MS;
    this.#options.onDropped(lines);
  }
}
