import { Unavailable } from "../../api/errors.ts";
import type { StateChange } from "../state-change.ts";
import { isBusy } from "./sqlite-errors.ts";

/** Tells when commits begin to fail, for example because the disk is full, and when they succeed again. */
export class Outage {
  #since: number | undefined;

  constructor(private readonly onStateChange: (change: StateChange) => void) {}

  watch<T>(commit: () => T): T {
    try {
      const result = commit();
      if (this.#since !== undefined) this.#end(this.#since);
      return result;
    } catch (error) {
      // Another process that holds the lock is no outage: the commit is repeated.
      if (error instanceof Unavailable && !isBusy(error)) this.#begin(error);
      throw error;
    }
  }

  #begin(cause: Unavailable): void {
    if (this.#since !== undefined) return;
    this.#since = performance.now();
    this.onStateChange({ state: "down", cause });
  }

  #end(since: number): void {
    this.#since = undefined;
    this.onStateChange({ state: "up", afterMs: Math.round(performance.now() - since) });
  }
}
