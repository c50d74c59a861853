const WIDTH = 24;
/** Some terminals do not say how wide they are. */
const DEFAULT_COLUMNS = 80;

/** Where a run stands: one line that is rewritten on a terminal, plain lines anywhere else. */
export class Progress {
  #done = 0;
  readonly #startedAt = performance.now();

  constructor(
    private readonly total: number,
    private readonly stream: NodeJS.WriteStream,
  ) {}

  step(what: string): void {
    const line = `${this.#percent()} ${what}${this.#left()}`;
    const bar = this.#bar();
    this.#done++;
    if (!this.stream.isTTY) return void this.stream.write(`${line}\n`);
    const room = Math.max(20, (this.stream.columns || DEFAULT_COLUMNS) - WIDTH - 2);
    this.stream.write(`\r\x1b[2K${bar} ${line.slice(0, room)}`);
  }

  finish(): void {
    if (this.stream.isTTY) this.stream.write("\r\x1b[2K");
  }

  #share(): number {
    return Math.min(1, this.#done / this.total);
  }

  #percent(): string {
    return `${Math.floor(this.#share() * 100)}%`.padStart(4);
  }

  #bar(): string {
    const full = Math.round(this.#share() * WIDTH);
    return "█".repeat(full) + "░".repeat(WIDTH - full);
  }

  /** From the steps so far; the first few say too little. */
  #left(): string {
    if (this.#done < 5) return "";
    const perStep = (performance.now() - this.#startedAt) / this.#done;
    const seconds = Math.max(0, Math.round((perStep * (this.total - this.#done)) / 1_000));
    return ` · ${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} left`;
  }
}
