import { SQL } from "bun";
import { Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import { DeadlineExceeded } from "../../runtime/timeout.ts";
import { withoutCredentials } from "../../text/host-urls.ts";

/**
 * The SQLSTATE with which a standby rejects the connection: "transaction read-write mode must be set before any query".
 */
const STANDBY_STATE = "25001";

const STARTING_OR_STOPPING = "57P03";

export function isStandby(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno === STANDBY_STATE;
}

/** Whether the server says that it is starting, recovering or shutting down. */
export function isStartingOrStopping(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno === STARTING_OR_STOPPING;
}

/** Replaces the error of a standby by one whose message names the cause. */
export function withExplanation(error: unknown): unknown {
  return isStandby(error)
    ? new Error("the server is a standby, so name the primary in --database-url, or promote it", {
        cause: error,
      })
    : error;
}

export function cannotOpen(url: string, error: unknown): Error {
  const reason = messageOf(withExplanation(error));
  return new Error(`cannot open the database ${withoutCredentials(url)}: ${reason}`, { cause: error });
}

/** SQLSTATEs, and classes of them, after which the same statement can succeed later. */
const TRANSIENT_STATES = [
  "08", // connection exceptions
  STANDBY_STATE,
  "25006", // read-only: the server has become a standby
  "25P03", // idle in a transaction for too long
  "28", // the login is rejected, for example while the password is changed
  "3D000", // the database does not exist
  "40", // rolled back: deadlock
  "42501", // no privilege, for example to connect to the database
  "53", // out of connections, memory or disk
  "55000", // the database allows no connections
  "55P03", // a lock was not available in time, or at once with NOWAIT
  "57", // shutting down, starting up, or cancelled by statement_timeout
  "58", // the server's disk failed
  "F0", // the configuration file has errors
];

/** The SQLSTATEs among them after which every other statement fails as well. */
const DOWN_STATES = [STANDBY_STATE, "25006", "28", "3D000", "55000", STARTING_OR_STOPPING, "F0"];
const CANNOT_CONNECT =
  /^ERR_POSTGRES_(?:CONNECTION_(?:REFUSED|FAILED|TIMEOUT)|TLS_|UNEXPECTED_MESSAGE|SASL_|\w+_AUTHENTICATION_METHOD)/;
/** The runtime's messages about the file in sslrootcert, at each attempt to connect. */
const NO_AUTHORITY = /^(?:Unable to access caFile path|Failed to load CA file)/;

/** Turns a transient error of PostgreSQL into Unavailable; returns every other error as it is. */
export function postgresUnavailable(error: unknown): unknown {
  if (!(error instanceof Error) || !isTransient(error)) return error;
  return new Unavailable(`PostgreSQL: ${messageOf(withExplanation(error))}`, { cause: error });
}

function isTransient(error: Error): boolean {
  if (isServerDown(error)) return true;
  if (!(error instanceof SQL.PostgresError)) return false;
  return startsWithAny(error.errno, TRANSIENT_STATES) || error.code.startsWith("ERR_POSTGRES_CONNECTION_");
}

/** Whether the server as a whole is unusable, and not only the connection of one statement. */
export function isServerDown(error: unknown): boolean {
  if (error instanceof DeadlineExceeded || isTlsError(error)) return true;
  if (!(error instanceof SQL.PostgresError)) return false;
  return startsWithAny(error.errno, DOWN_STATES) || CANNOT_CONNECT.test(error.code);
}

/**
 * Whether TLS failed, for example because of an expired certificate. Such errors come from the runtime and have codes
 * of OpenSSL or of the system.
 */
function isTlsError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof SQL.PostgresError) return false;
  return ("code" in error && "errno" in error) || NO_AUTHORITY.test(error.message);
}

export function isLocked(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno === "55P03";
}

/** Whether the connection was closed, for example because another query on it had no response. */
export function isClosed(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.code === "ERR_POSTGRES_CONNECTION_CLOSED";
}

/** Whether the server ended the connection, and with it a transaction that had begun and did nothing for too long. */
export function hasIdled(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno === "25P03";
}

/** Whether the server itself reported the error, which shows that it is reachable. */
export function isFromServer(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno !== undefined;
}

function startsWithAny(state: string | undefined, prefixes: readonly string[]): boolean {
  return state !== undefined && prefixes.some((prefix) => state.startsWith(prefix));
}
