import { parseArgs, type ParseArgsOptionsConfig } from "node:util";

/** Options that cannot be; one line, exit code 2. */
export class UsageError extends Error {}

export function parseFlags<const T extends ParseArgsOptionsConfig>(args: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Reads names with commas between them. */
export function namesIn<const N extends string>(
  flag: string,
  value: string,
  allowed: readonly N[],
): readonly N[] {
  return value.split(",").map((part) => {
    const found = allowed.find((name) => name === part.trim());
    if (found === undefined) throw new UsageError(`${flag}: "${part}" is none of ${allowed.join(", ")}`);
    return found;
  });
}

export function integerIn(flag: string, value: string, max: number): number {
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < 1 || number > max)
    throw new UsageError(`${flag} must be an integer from 1 to ${max}, not "${value}"`);
  return number;
}

/** Runs a command and exits with the code that it gives. What it has started ends with this process. */
export async function runCommand(name: string, main: (args: readonly string[]) => Promise<number>) {
  const exit = (message: string, code: number) => {
    process.stderr.write(`\n${name}: ${message}\n`);
    process.exit(code);
  };
  process.on("SIGINT", () => exit("interrupted; stopping everything that was started", 130));
  process.on("SIGTERM", () => exit("terminated; stopping everything that was started", 143));
  try {
    process.exit(await main(process.argv.slice(2)));
  } catch (error) {
    exit(error instanceof Error ? error.message : String(error), error instanceof UsageError ? 2 : 1);
  }
}

/** Ends the command with exit code 1 if it runs this long. */
export function limitRunTime(ms: number): void {
  setTimeout(() => {
    process.stderr.write(`\nNot finished after ${Math.round(ms / 60_000)} minutes.\n`);
    process.exit(1);
  }, ms).unref();
}

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
