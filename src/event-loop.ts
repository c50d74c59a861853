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

/** Other work of the event loop goes on meanwhile. */
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
  #endsAt = performance.now() + TIME_SLICE_MS;

  get isOver(): boolean {
    return performance.now() >= this.#endsAt;
  }

  async next(): Promise<void> {
    await yieldToEventLoop();
    this.#endsAt = performance.now() + TIME_SLICE_MS;
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
