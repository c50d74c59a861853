import { SQLiteError } from "bun:sqlite";
import { accessSync, constants, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { Unavailable } from "../../api/errors.ts";
import type { StateChange } from "../../domain/ports.ts";
import { scheduler } from "../../event-loop.ts";

const BUSY = 5;
const FULL = 13;

/** The same call can succeed later: by itself, or after an operator has freed space. */
const TRANSIENT_ERRORS: ReadonlySet<number> = new Set([
  BUSY,
  6, // LOCKED
  7, // NOMEM
  8, // READONLY: the disk was remounted after errors, or its permissions changed
  10, // IOERR
  FULL,
  14, // CANTOPEN: no file descriptors left
  15, // PROTOCOL: too many processes compete for a lock
]);

/** The low byte of the extended error code. */
function primaryCode(error: unknown): number | undefined {
  return error instanceof SQLiteError ? error.errno & 0xff : undefined;
}

/** Turns a transient error of SQLite into Unavailable; returns every other error as it is. */
export function toUnavailable(error: unknown, path?: string): unknown {
  const code = primaryCode(error);
  if (code === undefined || !TRANSIENT_ERRORS.has(code)) return error;
  return new Unavailable(`SQLite: ${reasonOf(error, path)}`, { cause: error });
}

const DISK_ERRORS: ReadonlySet<number | undefined> = new Set([8, 10, 14]);
/** With less, not even the files beside a database can be created. */
const LITTLE_SPACE_BYTES = 128 * 1024;

/** Names a full disk and a read-only file system, which SQLite often reports as "disk I/O error". */
function reasonOf(error: unknown, path?: string): string {
  const code = primaryCode(error);
  if (code === FULL) return "the disk is full";
  const problem = path !== undefined && DISK_ERRORS.has(code) ? diskProblem(dirname(path)) : undefined;
  return problem ?? (error instanceof Error ? error.message : String(error));
}

/** An error that names the file. What SQLite says of a full or read-only disk is left out. */
export function failureOf(task: string, path: string, error: unknown): Error {
  const reason = reasonOf(error, path);
  const isNamed = primaryCode(error) !== undefined && error instanceof Error && reason !== error.message;
  return new Error(`cannot ${task} ${path}: ${reason}`, isNamed ? {} : { cause: error });
}

function diskProblem(directory: string): string | undefined {
  try {
    accessSync(directory, constants.W_OK);
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize < LITTLE_SPACE_BYTES ? "the disk is full" : undefined;
  } catch (error) {
    const isReadOnly = error instanceof Error && "code" in error && error.code === "EROFS";
    return isReadOnly ? `the file system of ${directory} is read-only` : undefined;
  }
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
