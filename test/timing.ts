import { Unavailable } from "../src/api/errors.ts";

const TRIES_MS = 30_000;

/** Runs it until one run is fast enough: a busy machine makes some of them long, and a slow algorithm all of them. */
export function isEverFasterThan(ms: number, run: () => unknown): boolean {
  const end = performance.now() + TRIES_MS;
  for (let startedAt = performance.now(); startedAt < end; startedAt = performance.now()) {
    run();
    if (performance.now() - startedAt < ms) return true;
  }
  return false;
}

const PAUSE_MS = 10;

/**
 * Waits for what nothing announces. The bound is the one that is promised, where there is one. Only the pauses between
 * two attempts count: on a busy machine they and the attempts take longer, as everything else does.
 */
export async function until(isTrue: () => boolean | Promise<boolean>, withinMs: number): Promise<void> {
  for (let waitedMs = 0; !(await isTrue()); waitedMs += PAUSE_MS) {
    if (waitedMs >= withinMs) throw new Error(`not true within ${withinMs} ms: ${isTrue}`);
    await Bun.sleep(PAUSE_MS);
  }
}

/** Waits as `until` does, and resolves to the first value that is not undefined. */
export async function untilFound<T>(find: () => Promise<T | undefined>, withinMs: number): Promise<T> {
  let found: T | undefined;
  await until(async () => (found = await find()) !== undefined, withinMs);
  if (found === undefined) throw new Error("nothing was found");
  return found;
}

/** Repeats work until the database is available. A busy machine may also take longer than the timeout. */
export async function untilAvailable<T>(work: () => Promise<T>): Promise<T> {
  const found = await untilFound(async () => {
    try {
      return { result: await work() };
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      return undefined;
    }
  }, 10_000);
  return found.result;
}
