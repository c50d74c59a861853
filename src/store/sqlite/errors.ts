import { SQLiteError } from "bun:sqlite";
import { Unavailable } from "../../api/errors.ts";
import type { StateChange } from "../../domain/ports.ts";
import { scheduler } from "../../event-loop.ts";

const BUSY = 5;

/** The same call can succeed later: by itself, or after an operator has freed space. */
const TRANSIENT_ERRORS: ReadonlySet<number> = new Set([
  BUSY,
  6, // LOCKED
  7, // NOMEM
  8, // READONLY: the disk was remounted after errors, or its permissions changed
  10, // IOERR
  13, // FULL
  14, // CANTOPEN: no file descriptors left
  15, // PROTOCOL: too many processes compete for a lock
]);

/** The low byte of the extended error code. */
function primaryCode(error: unknown): number | undefined {
  return error instanceof SQLiteError ? error.errno & 0xff : undefined;
}

/** Turns a transient error of SQLite into Unavailable; returns every other error as it is. */
export function toUnavailable(error: unknown): unknown {
  const code = primaryCode(error);
  if (code === undefined || !TRANSIENT_ERRORS.has(code)) return error;
  return new Unavailable(`SQLite: ${error instanceof Error ? error.message : error}`, { cause: error });
}

/** Whether another process held the lock. Nothing has been written in that case. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error instanceof Unavailable ? error.cause : error) === BUSY;
}

/**
 * Repeats an attempt while another process holds the lock, in short random intervals. SQLite's own busy handler waits
 * up to 100 ms between attempts, and can miss for seconds the gaps that a busy server leaves, of less than 1 ms.
 */
export async function retryWhileBusy<T>(attempt: () => T, maxMs: number): Promise<T> {
  const deadline = scheduler.now() + maxMs;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error) || scheduler.now() >= deadline) throw toUnavailable(error);
      await scheduler.sleep(2 * scheduler.random());
    }
  }
}

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
    this.#since = scheduler.now();
    this.onStateChange({ state: "down", cause });
  }

  #end(since: number): void {
    this.#since = undefined;
    this.onStateChange({ state: "up", afterMs: Math.round(scheduler.now() - since) });
  }
}
