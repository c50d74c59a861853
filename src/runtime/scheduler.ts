export interface ScheduledTimer {
  close(): unknown;
  /** Lets the process end before the timer fires. */
  unref(): unknown;
}

/** Time, timers, random numbers and iterations of the event loop. A simulation determines all of them by a seed. */
export interface Scheduler {
  /** Returns milliseconds of a monotonic clock. */
  now(): number;
  /** Returns a number from 0 to below 1. */
  random(): number;
  setTimeout(work: () => void, ms: number): ScheduledTimer;
  setInterval(work: () => void, ms: number): ScheduledTimer;
  setImmediate(work: () => void): void;
  /** Runs the work when all sockets that were ready have been read, and before work that has yielded. */
  atEndOfIteration(work: () => void): void;
  sleep(ms: number): Promise<void>;
  /** Resolves after other work of the event loop. */
  yield(): Promise<void>;
}

/** The scheduler of this process. It looks up the globals at each call, because tests replace them. */
export const scheduler: Scheduler = {
  now: () => performance.now(),
  random: () => Math.random(),
  setTimeout: (work, ms) => setTimeout(work, ms),
  setInterval: (work, ms) => setInterval(work, ms),
  setImmediate: (work) => void setImmediate(work),
  atEndOfIteration,
  sleep: (ms) => Bun.sleep(ms),
  yield: yieldToEventLoop,
};

const endOfIteration: (() => void)[] = [];

export function atEndOfIteration(work: () => void): void {
  if (endOfIteration.push(work) === 1) setImmediate(finishIteration);
}

function finishIteration(): void {
  for (const work of endOfIteration.splice(0)) work();
}

/** Lets other work of the event loop run before the caller continues. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => {
      finishIteration();
      resolve();
    });
  });
}

/** Returns a function that resolves once in each iteration of the event loop, in the order of its calls. */
export function takingTurns(): () => Promise<void> {
  let last = Promise.resolve();
  return () => (last = last.then(yieldToEventLoop));
}
