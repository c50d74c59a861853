import { grouped } from "../contract/formatting.ts";
import type { ErrorStream } from "./command.ts";

const BAR_WIDTH = 24;
const REDRAW_MS = 100;
/** Where nobody watches a bar. */
const LINE_EVERY_MS = 5_000;

export interface ProgressOptions {
  readonly stream: ErrorStream;
  /** Rows that were done before. */
  readonly rows: number;
  /** Milliseconds on a monotonic clock. */
  readonly elapsed?: () => number;
}

/** The progress of a long command: a bar on a terminal, and otherwise a line every few seconds. */
export class Progress {
  readonly #options: Required<ProgressOptions>;
  readonly #startedAt: number;
  #shownAt: number;
  #hasBar = false;

  constructor({ stream, rows, elapsed = () => performance.now() }: ProgressOptions) {
    this.#options = { stream, rows, elapsed };
    this.#startedAt = elapsed();
    this.#shownAt = this.#startedAt;
  }

  /** `share` is from 0 to 1; undefined if the end is not known. */
  update(rows: number, share?: number): void {
    const { stream, elapsed } = this.#options;
    const now = elapsed();
    if (now - this.#shownAt < (stream.isTerminal ? REDRAW_MS : LINE_EVERY_MS)) return;
    this.#shownAt = now;
    const text = this.#describe(rows, share, (now - this.#startedAt) / 1_000);
    if (!stream.isTerminal) return stream.write(`petstore: ${text}\n`);
    this.#hasBar = true;
    const bar = share === undefined ? "" : `${barOf(share)} `;
    stream.write(`\r\x1b[2K${`${bar}${text}`.slice(0, stream.columns - 1)}`);
  }

  /** Removes the bar. */
  end(): void {
    if (this.#hasBar) this.#options.stream.write("\r\x1b[2K");
    this.#hasBar = false;
  }

  /** `250,000 rows, 120,000 rows/s, 38 % done, 0:07 left`. */
  #describe(rows: number, share: number | undefined, seconds: number): string {
    const rate = grouped(Math.round((rows - this.#options.rows) / seconds));
    const parts = [`${grouped(rows)} rows`, `${rate} rows/s`];
    if (share !== undefined && share > 0) {
      const left = Math.round((seconds / share) * (1 - share));
      parts.push(`${Math.floor(share * 100)} % done`);
      parts.push(`${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`);
    }
    return parts.join(", ");
  }
}

function barOf(share: number): string {
  const full = Math.round(Math.min(1, share) * BAR_WIDTH);
  return "█".repeat(full) + "░".repeat(BAR_WIDTH - full);
}
