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
