import { PETSTORE } from "../harness/petstore.ts";

/** A command that is killed again and again, and what must hold after that. */
export interface KilledCommand {
  readonly name: string;
  /** Prepares a new place to work on. */
  prepare(): Promise<Attempt>;
}

export interface Attempt {
  readonly argv: readonly string[];
  /** Problems right after the kill: what others see must be whole. */
  checkAfterKill(): Promise<readonly string[]>;
  /** Problems after the same command has been run again. */
  checkAtEnd(): Promise<readonly string[]>;
  remove(): Promise<void>;
}

export interface KillResult {
  readonly name: string;
  readonly kills: number;
  /** Kills that came too late: the command had ended. They do not count. */
  readonly late: number;
  /** How long the command takes if nobody kills it. */
  readonly durationMs: number;
  /** The same problem is in the list once, with the number of kills after which it occurred. */
  readonly problems: ReadonlyMap<string, number>;
}

/** Kills the command at random moments of its run, `kills` times, and runs it again after each. */
export async function killRepeatedly({ name, prepare }: KilledCommand, kills: number): Promise<KillResult> {
  const problems = new Map<string, number>();
  const report = (found: readonly string[]) => {
    for (const problem of found) problems.set(problem, (problems.get(problem) ?? 0) + 1);
  };
  const durationMs = await durationOf(await prepare());
  let [count, late] = [0, 0];
  while (count < kills) {
    const attempt = await prepare();
    if (await killDuring(attempt.argv, Math.random() * durationMs)) {
      report(await attempt.checkAfterKill());
      report(await finish(attempt));
      count++;
    } else late++;
    await attempt.remove();
  }
  return { name, kills: count, late, durationMs, problems };
}

async function durationOf(attempt: Attempt): Promise<number> {
  const startedAt = performance.now();
  const problems = await finish(attempt);
  const durationMs = performance.now() - startedAt;
  await attempt.remove();
  if (problems.length > 0) throw new Error(`it fails without a kill: ${problems.join("; ")}`);
  return durationMs;
}

async function finish({ argv, checkAtEnd }: Attempt): Promise<string[]> {
  const child = Bun.spawn([...PETSTORE, ...argv], { stdout: "ignore", stderr: "pipe" });
  const [error, code] = await Promise.all([child.stderr.text(), child.exited]);
  return [...(code === 0 ? [] : [`run again, it fails: ${error.trim()}`]), ...(await checkAtEnd())];
}

/** Whether the command was running when it was killed. */
async function killDuring(argv: readonly string[], afterMs: number): Promise<boolean> {
  const child = Bun.spawn([...PETSTORE, ...argv], { stdout: "ignore", stderr: "ignore" });
  await Promise.race([Bun.sleep(afterMs), child.exited]);
  child.kill("SIGKILL");
  await child.exited;
  return child.signalCode === "SIGKILL";
}
