import { SQLiteError } from "bun:sqlite";
import { Unavailable } from "../../contract/errors.ts";

const BUSY = 5;

/** What passes by itself or when an operator makes room: the same call may succeed later. */
const PASSING: ReadonlySet<number> = new Set([
  BUSY,
  6, // LOCKED
  7, // NOMEM
  8, // READONLY: the disk was remounted after errors, or its permissions changed
  10, // IOERR
  13, // FULL
  14, // CANTOPEN: no file descriptors left
  15, // PROTOCOL: lost too many races for a lock
]);

/** `errno` is the extended code; its low byte is the kind of failure. */
function kindOf(error: unknown): number | undefined {
  return error instanceof SQLiteError ? error.errno & 0xff : undefined;
}

/** What the rest of the program is to see in place of an error from SQLite; anything else stays as it is. */
export function asFault(error: unknown): unknown {
  const kind = kindOf(error);
  if (kind === undefined || !PASSING.has(kind)) return error;
  return new Unavailable(`SQLite: ${error instanceof Error ? error.message : error}`, { cause: error });
}

/** Whether another process held the lock; nothing has been written then. */
export function isBusy(error: unknown): boolean {
  return kindOf(error instanceof Unavailable ? error.cause : error) === BUSY;
}

export function guarded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw asFault(error);
  }
}
