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
 * For what nothing announces. The bound is the one that is promised, where there is one. Only the pauses between two
 * attempts count: on a busy machine they and the attempts take longer, as everything else does.
 */
export async function until(isTrue: () => boolean | Promise<boolean>, withinMs: number): Promise<void> {
  for (let waitedMs = 0; !(await isTrue()); waitedMs += PAUSE_MS) {
    if (waitedMs >= withinMs) throw new Error(`not true within ${withinMs} ms: ${isTrue}`);
    await Bun.sleep(PAUSE_MS);
  }
}

/** As `until`, for a value: resolves to the first one that is not undefined. */
export async function untilFound<T>(find: () => Promise<T | undefined>, withinMs: number): Promise<T> {
  let found: T | undefined;
  await until(async () => (found = await find()) !== undefined, withinMs);
  if (found === undefined) throw new Error("nothing was found");
  return found;
}
