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

/** For what nothing announces. */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + TRIES_MS;
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`not true within ${TRIES_MS / 1_000} s: ${isTrue}`);
    await Bun.sleep(10);
  }
}
