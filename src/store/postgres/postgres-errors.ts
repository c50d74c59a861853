import { SQL } from "bun";
import { Unavailable } from "../../contract/errors.ts";

/** SQLSTATEs, or classes of them, that say nothing about the statement: the same one may succeed later. */
const PASSING = [
  "08", // connection exceptions
  "25006", // read-only: this server is no longer the one that takes writes
  "25P03", // idle in a transaction for too long
  "28", // the login is refused, as while a password is being changed
  "3D000", // the database is not there
  "40", // rolled back: deadlock
  "53", // out of connections, memory or disk
  "55P03", // a lock was not to be had in time
  "57", // shut down, starting up, or cancelled by statement_timeout
  "58", // the server's own disk
];

/** Of those, what shows that there is no point in asking again at once. */
const DOWN = ["25006", "28", "3D000", "57P03"];
const CANNOT_CONNECT = /^ERR_POSTGRES_(?:CONNECTION_(?:REFUSED|FAILED|TIMEOUT)|TLS_)/;

/** The server said nothing for too long. */
export class Late extends Error {
  override readonly name = "Late";
}

/** What the rest of the program is to see in place of an error of the engine; anything else stays as it is. */
export function asFault(error: unknown): unknown {
  if (!isPassing(error)) return error;
  return new Unavailable(`PostgreSQL: ${(error as Error).message}`, { cause: error });
}

function isPassing(error: unknown): boolean {
  if (error instanceof Late) return true;
  if (!(error instanceof SQL.PostgresError)) return false;
  return (
    startsWithAny(error.errno, PASSING) ||
    error.code.startsWith("ERR_POSTGRES_CONNECTION_") ||
    meansDown(error)
  );
}

/** Whether the engine is gone, frozen or not to be talked to, and not merely this statement's connection. */
export function meansDown(error: unknown): boolean {
  if (error instanceof Late) return true;
  if (!(error instanceof SQL.PostgresError)) return false;
  return startsWithAny(error.errno, DOWN) || CANNOT_CONNECT.test(error.code);
}

/** Whether the server said it: then it is there. */
export function isAnswer(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno !== undefined;
}

function startsWithAny(state: string | undefined, starts: readonly string[]): boolean {
  return state !== undefined && starts.some((start) => state.startsWith(start));
}
