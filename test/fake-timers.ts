import { afterEach, beforeEach, jest } from "bun:test";

/** In the tests of the file, timers and Date move only when a test moves them. */
export function useFakeTimers(): void {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());
}

/** Lets everything go on that waits for no timer. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export async function advance(ms: number): Promise<void> {
  await settle();
  jest.advanceTimersByTime(ms);
  await settle();
}

/** Moves time from one timer to the next until the work is done. */
export async function finish<T>(work: Promise<T>): Promise<T> {
  const pending = new Set([work]);
  const end = () => pending.delete(work);
  work.then(end, end);
  for (await settle(); pending.size > 0; await settle()) jest.advanceTimersToNextTimer();
  return work;
}
