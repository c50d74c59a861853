const BAR_WIDTH = 24;
/** Some terminals do not report their width. */
const DEFAULT_COLUMNS = 80;

/** The progress of a run: one line that is rewritten on a terminal, plain lines elsewhere. */
export class Progress {
  #done = 0;
  readonly #startedAt = performance.now();

  constructor(
    private readonly total: number,
    private readonly stream: NodeJS.WriteStream,
  ) {}

  step(what: string): void {
    const share = Math.min(1, this.#done / this.total);
    const line = `${`${Math.floor(share * 100)}%`.padStart(4)} ${what}${this.#timeLeft()}`;
    this.#done++;
    if (!this.stream.isTTY) return void this.stream.write(`${line}\n`);
    const full = Math.round(share * BAR_WIDTH);
    const bar = "█".repeat(full) + "░".repeat(BAR_WIDTH - full);
    const room = Math.max(20, (this.stream.columns || DEFAULT_COLUMNS) - BAR_WIDTH - 2);
    this.stream.write(`\r\x1b[2K${bar} ${line.slice(0, room)}`);
  }

  finish(): void {
    if (this.stream.isTTY) this.stream.write("\r\x1b[2K");
  }

  /** Estimated from the steps so far, once there are some. */
  #timeLeft(): string {
    if (this.#done < 5) return "";
    const perStep = (performance.now() - this.#startedAt) / this.#done;
    const seconds = Math.max(0, Math.round((perStep * (this.total - this.#done)) / 1_000));
    return ` · ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} left`;
  }
}
