import { countOf } from "../../../text/formatting.ts";
import type { WorkProgress } from "../../../archive/progress.ts";
import type { ErrorStream } from "../../command.ts";

/** The bar has room next to the text. */
const BAR_WIDTH = 24;
const REDRAW_MS = 100;
/** The time between two lines where nobody watches a bar. */
const LINE_EVERY_MS = 5_000;
/** A longer time is a guess from the first moments of a step. */
const MAX_LEFT_S = 100 * 3_600;

export interface ProgressOptions {
  readonly stream: ErrorStream;
  /** Shows nothing: the command prints its result for a program. */
  readonly isJson: boolean;
  /** Rows that were done before. */
  readonly rows?: number;
}

/** The progress of a long command: a bar on a terminal, and otherwise a line every few seconds. */
export class Progress {
  readonly #options: Required<ProgressOptions>;
  #step = "";
  #stepStartedAt = performance.now();
  /** Rows or bytes at the start of the step. */
  #from: number;
  #shownAt = this.#stepStartedAt;
  #hasBar = false;

  constructor(options: ProgressOptions) {
    this.#options = { rows: 0, ...options };
    this.#from = this.#options.rows;
  }

  update(progress: WorkProgress): void {
    const { stream, isJson } = this.#options;
    const { step = "" } = progress;
    const done = within(progress.done, Number.MAX_VALUE);
    // The end of a step that takes longer than expected is unknown.
    const share = within(progress.share, 1);
    if (isJson) return;
    const now = performance.now();
    if (step !== this.#step) {
      this.#step = step;
      this.#stepStartedAt = now;
      this.#from = 0;
    }
    if (now - this.#shownAt < (stream.isTerminal ? REDRAW_MS : LINE_EVERY_MS)) return;
    this.#shownAt = now;
    const text = this.#describe(now, { ...progress, done, share });
    if (!stream.isTerminal) return stream.write(`petstore: ${text}\n`);
    this.#hasBar = true;
    const width = Math.min(BAR_WIDTH, stream.columns - 2 - text.length);
    const bar = share === undefined || width < 1 ? "" : `${barOf(share, width)} `;
    stream.write(`\r\x1b[2K${`${bar}${text}`.slice(0, stream.columns - 1)}`);
  }

  /** Removes the bar. */
  end(): void {
    if (this.#hasBar) this.#options.stream.write("\r\x1b[2K");
    this.#hasBar = false;
  }

  /** `copying: 250,000 rows, 120,000 rows/s, 38 % done, 0:07 left`. */
  #describe(now: number, { unit, done, share }: WorkProgress): string {
    const parts: string[] = [];
    const amount = (count: number) =>
      unit === "bytes" ? `${(count / 1e6).toFixed(1)} MB` : countOf(Math.round(count), "row");
    const stepMs = now - this.#stepStartedAt;
    if (done !== undefined) {
      parts.push(amount(done));
      const rate = within((done - this.#from) / (stepMs / 1_000), Number.MAX_VALUE);
      if (stepMs >= REDRAW_MS && rate !== undefined) parts.push(`${amount(rate)}/s`);
    }
    if (share !== undefined && share > 0) {
      const left = within(Math.round((stepMs / 1_000 / share) * (1 - share)), MAX_LEFT_S);
      parts.push(`${Math.floor(share * 100)} % done`);
      if (left !== undefined)
        parts.push(`${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left`);
    }
    const text = parts.join(", ");
    return this.#step === "" || text === "" ? this.#step + text : `${this.#step}: ${text}`;
  }
}

/** The number if it is from 0 to `max`; undefined if it is not, and can thus not be shown. */
function within(value: number | undefined, max: number): number | undefined {
  return value !== undefined && value >= 0 && value <= max ? value : undefined;
}

function barOf(share: number, width: number): string {
  const full = Math.round(share * width);
  return "█".repeat(full) + "░".repeat(width - full);
}
