import { SQL } from "bun";
import { Unavailable } from "../../api/errors.ts";
import { QueryTimeoutError } from "./connections/query-timeout.ts";

/** SQLSTATEs and classes of them that are not about the statement: the same one can succeed later. */
const TRANSIENT_STATES = [
  "08", // connection exceptions
  "25006", // read-only: the server has become a standby
  "25P03", // idle in a transaction for too long
  "28", // the login is rejected, for example while the password is changed
  "3D000", // the database does not exist
  "40", // rolled back: deadlock
  "53", // out of connections, memory or disk
  "55P03", // a lock was not available in time
  "57", // shutting down, starting up, or cancelled by statement_timeout
  "58", // a failure of the server's disk
];

/** Of those, the ones after which every other statement fails as well. */
const DOWN_STATES = ["25006", "28", "3D000", "57P03"];
const CANNOT_CONNECT = /^ERR_POSTGRES_(?:CONNECTION_(?:REFUSED|FAILED|TIMEOUT)|TLS_)/;

/** Turns a transient error of PostgreSQL into Unavailable; returns every other error as it is. */
export function toUnavailable(error: unknown): unknown {
  if (!(error instanceof Error) || !isTransient(error)) return error;
  return new Unavailable(`PostgreSQL: ${error.message}`, { cause: error });
}

function isTransient(error: Error): boolean {
  if (isServerDown(error)) return true;
  if (!(error instanceof SQL.PostgresError)) return false;
  return startsWithAny(error.errno, TRANSIENT_STATES) || error.code.startsWith("ERR_POSTGRES_CONNECTION_");
}

/** Whether the server as a whole cannot be used, and not only the connection of one statement. */
export function isServerDown(error: unknown): boolean {
  if (error instanceof QueryTimeoutError) return true;
  if (!(error instanceof SQL.PostgresError)) return false;
  return startsWithAny(error.errno, DOWN_STATES) || CANNOT_CONNECT.test(error.code);
}

/** Whether the server itself reported the error, which shows that it is reachable. */
export function isFromServer(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno !== undefined;
}

function startsWithAny(state: string | undefined, prefixes: readonly string[]): boolean {
  return state !== undefined && prefixes.some((prefix) => state.startsWith(prefix));
}
