const SHARE = 256;
/** So many answers take some milliseconds when they come without a pause. */
const BUSY_MS = 100;

/**
 * Fairness between connections. The runtime goes on reading a socket for as long as there is more and each answer
 * comes at once: one client that sends without a pause would keep everybody else, timers included, waiting for as long
 * as it likes. So in busy times one answer in 256 is put off to the next turn of the loop, and others get theirs.
 */
export class Share {
  #answered = 0;
  #since = 0;

  isSpent(): boolean {
    if (++this.#answered < SHARE) return false;
    const since = this.#since;
    this.#answered = 0;
    this.#since = performance.now();
    return this.#since - since < BUSY_MS;
  }
}
