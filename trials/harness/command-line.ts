import { parseArgs } from "node:util";

/** Invalid options. The message is one line, and the exit code is 2. */
export class UsageError extends Error {}

interface Flag<T> {
  readonly type: "boolean" | "string";
  /** Reads a value, which is undefined if the flag is missing. */
  read(value: string | undefined, flag: string): T;
}
type Flags = Readonly<Record<string, Flag<unknown>>>;
type FlagValues<F extends Flags> = { [N in keyof F]: ReturnType<F[N]["read"]> };

export const isGiven: Flag<boolean> = { type: "boolean", read: (value) => value !== undefined };
export const text: Flag<string | undefined> = { type: "string", read: (value) => value };

export function integer<const T extends number | undefined>(usual: T, max: number): Flag<number | T> {
  return {
    type: "string",
    read(value, flag) {
      if (value === undefined) return usual;
      const number = Number(value);
      if (!/^\d+$/.test(value) || number < 1 || number > max)
        throw new UsageError(`${flag} must be an integer from 1 to ${max}, not "${value}"`);
      return number;
    },
  };
}

/** A flag for names that are separated by commas. */
export function names<const N extends string>(allowed: readonly N[]): Flag<readonly N[] | undefined> {
  const nameIn = (part: string, flag: string) => {
    const found = allowed.find((name) => name === part.trim());
    if (found === undefined) throw new UsageError(`${flag}: "${part}" is none of ${allowed.join(", ")}`);
    return found;
  };
  return { type: "string", read: (value, flag) => value?.split(",").map((part) => nameIn(part, flag)) };
}

export function parseFlags<const F extends Flags>(args: readonly string[], flags: F): FlagValues<F> {
  try {
    const { values } = parseArgs({ args: [...args], options: flags, strict: true, allowPositionals: false });
    const read = Object.entries(flags).map(([name, flag]) => {
      const value: unknown = Reflect.get(values, name);
      return [name, flag.read(value === undefined ? value : String(value), `--${name}`)];
    });
    return Object.fromEntries(read);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

interface Command<F extends Flags> {
  readonly name: string;
  /** The output of `--help`. */
  readonly help?: string;
  /** The flags; without them, the command reads its arguments itself. */
  readonly flags?: F;
  /** The time after which the command ends with exit code 1. */
  readonly maxMinutes?: number;
  main(flags: FlagValues<F>, args: readonly string[]): Promise<number>;
}

/** Runs a command and exits with the code that it returns. The processes that it has started end with this one. */
export async function runCommand<const F extends Flags>({ name, help, flags, maxMinutes, main }: Command<F>) {
  const exit = (message: string, code: number) => {
    process.stderr.write(`\n${name}: ${message}\n`);
    process.exit(code);
  };
  process.on("SIGINT", () => exit("interrupted; stopping everything that was started", 130));
  process.on("SIGTERM", () => exit("terminated; stopping everything that was started", 143));
  const args = process.argv.slice(2);
  if (help !== undefined && args.includes("--help")) {
    process.stdout.write(help);
    process.exit(0);
  }
  if (maxMinutes !== undefined) limitRunTime(maxMinutes);
  try {
    process.exit(await main(parseFlags(flags ? args : [], flags ?? ({} as F)), args));
  } catch (error) {
    exit(error instanceof Error ? error.message : String(error), error instanceof UsageError ? 2 : 1);
  }
}

/** Ends the command with exit code 1 if it runs this long. */
export function limitRunTime(minutes: number): void {
  const end = () => {
    process.stderr.write(`\nNot finished after ${Math.round(minutes)} minutes.\n`);
    process.exit(1);
  };
  setTimeout(end, minutes * 60_000).unref();
}
