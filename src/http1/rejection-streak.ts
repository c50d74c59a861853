import type { Status } from "./response.ts";

/** From the next one on, the connection is slowed. A client that waits as `Retry-After` says gets nowhere near. */
const MAX_SHORT = 20;
/** With this one, the connection closes. */
const MAX_LONG = 1_000;

/** Counts the responses 401 and 429 that a connection gets in a row. */
export class RejectionStreak {
  #length = 0;

  count(status: Status): "short" | "long" | "too long" {
    this.#length = status === 401 || status === 429 ? this.#length + 1 : 0;
    if (this.#length <= MAX_SHORT) return "short";
    return this.#length < MAX_LONG ? "long" : "too long";
  }
}
