/** A timer that has been set. */
export interface ScheduledTimer {
  close(): unknown;
  /** The process may end before it fires. */
  unref(): unknown;
}

/** Time, timers, chance and turns of the event loop. A simulation replaces it by one that a seed determines. */
export interface Scheduler {
  /** Milliseconds since any time, by a monotonic clock. */
  now(): number;
  /** From 0 up to, and without, 1. */
  random(): number;
  setTimeout(work: () => void, ms: number): ScheduledTimer;
  setInterval(work: () => void, ms: number): ScheduledTimer;
  setImmediate(work: () => void): void;
  sleep(ms: number): Promise<void>;
  /** Other work of the event loop goes on meanwhile. */
  yield(): Promise<void>;
}

/** That of this process. The globals are looked up at each call: tests replace them. */
export const scheduler: Scheduler = {
  now: () => performance.now(),
  random: () => Math.random(),
  setTimeout: (work, ms) => setTimeout(work, ms),
  setInterval: (work, ms) => setInterval(work, ms),
  setImmediate: (work) => void setImmediate(work),
  sleep: (ms) => Bun.sleep(ms),
  yield: yieldToEventLoop,
};

/** The length of a time slice: requests of clients wait for its end. */
const TIME_SLICE_MS = 2;
const ITEMS_PER_LOOK = 32;

const endOfIteration: (() => void)[] = [];

/** Runs the work when all sockets that were ready have been read, and before work that has yielded. */
export function atEndOfIteration(work: () => void): void {
  if (endOfIteration.push(work) === 1) setImmediate(finishIteration);
}

function finishIteration(): void {
  for (const work of endOfIteration.splice(0)) work();
}

export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => {
      finishIteration();
      resolve();
    });
  });
}

/** Work that takes longer than a request may wait is done in time slices: `if (slice.isOver) await slice.next()`. */
export class TimeSlice {
  #endsAt = scheduler.now() + TIME_SLICE_MS;

  get isOver(): boolean {
    return scheduler.now() >= this.#endsAt;
  }

  async next(): Promise<void> {
    await yieldToEventLoop();
    this.#endsAt = scheduler.now() + TIME_SLICE_MS;
  }
}

export async function forEachInTimeSlices<T>(
  items: Iterable<T>,
  work: (item: T) => void,
  itemsPerLook = ITEMS_PER_LOOK,
): Promise<void> {
  const timeSlice = new TimeSlice();
  let done = 0;
  for (const item of items) {
    work(item);
    // Reading the clock takes as long as looking at a key.
    if (++done % itemsPerLook === 0 && timeSlice.isOver) await timeSlice.next();
  }
}
