/** So long a turn of longer work lasts: requests of clients wait for its end. */
const TURN_MS = 2;
const ITEMS_PER_LOOK = 32;

const endOfTurn: (() => void)[] = [];

/** Runs the work when all sockets that were ready have been read, and before work that has given way. */
export function atEndOfTurn(work: () => void): void {
  if (endOfTurn.push(work) === 1) setImmediate(finishTurn);
}

function finishTurn(): void {
  for (const work of endOfTurn.splice(0)) work();
}

/** Other work of the event loop goes on meanwhile. */
export function giveWay(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => {
      finishTurn();
      resolve();
    });
  });
}

/** Work that takes longer than a request may wait is done in turns: `if (turn.isOver) await turn.next()`. */
export class Turn {
  #endsAt = performance.now() + TURN_MS;

  get isOver(): boolean {
    return performance.now() >= this.#endsAt;
  }

  /** Other work of the event loop goes on meanwhile. */
  async next(): Promise<void> {
    await giveWay();
    this.#endsAt = performance.now() + TURN_MS;
  }
}

export async function forEachInTurns<T>(
  items: Iterable<T>,
  work: (item: T) => void,
  itemsPerLook = ITEMS_PER_LOOK,
): Promise<void> {
  const turn = new Turn();
  let done = 0;
  for (const item of items) {
    work(item);
    // Reading the clock takes as long as looking at a key.
    if (++done % itemsPerLook === 0 && turn.isOver) await turn.next();
  }
}
