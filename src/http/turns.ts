let pending: Promise<void> | undefined;

/** The next turn of the event loop; everybody who waits for the same one gets the same promise. */
export function nextTurn(): Promise<void> {
  pending ??= new Promise((resolve) => {
    setImmediate(() => {
      pending = undefined;
      resolve();
    });
  });
  return pending;
}

/** A few milliseconds of answers. */
const MAX_PER_TURN = 256;

/**
 * Fairness between connections. The runtime goes on reading a socket for as long as there is more and each answer
 * comes at once: one client that sends without a pause would keep everybody else, timers included, waiting for as long
 * as it likes. Past its share of a turn an answer is put off to the next one, and others get theirs.
 */
export class Share {
  #answered = 0;

  isSpent(): boolean {
    if (this.#answered++ === 0) setImmediate(() => (this.#answered = 0));
    return this.#answered > MAX_PER_TURN;
  }
}
