import { peakMb } from "../trials/harness/processes.ts";

export interface Timed {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly memoryMb: number;
}

interface TimedOptions {
  readonly outputFile?: string;
  /** The text for standard input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

const LOOK_EVERY_MS = 20;

/** Runs a command that must succeed. */
export async function timed(
  command: readonly string[],
  { outputFile, input = "", env = {} }: TimedOptions = {},
): Promise<Timed> {
  const startedAt = performance.now();
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...env },
    stdin: Buffer.from(input),
    stdout: outputFile === undefined ? "ignore" : Bun.file(outputFile),
    stderr: "pipe",
  });
  let memoryMb = 0;
  const timer = setInterval(() => (memoryMb = peakMb(child.pid) || memoryMb), LOOK_EVERY_MS);
  const [errors, code] = await Promise.all([child.stderr.text(), child.exited]);
  clearInterval(timer);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${errors.slice(0, 500)}`);
  const cpuSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6;
  return { seconds: (performance.now() - startedAt) / 1_000, cpuSeconds, memoryMb };
}
