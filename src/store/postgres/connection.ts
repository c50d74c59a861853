import { SQL } from "bun";
import packageJson from "../../../package.json" with { type: "json" };
import { Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import { withoutCredentials } from "../../text/host-urls.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import { DeadlineExceeded, withTimeout } from "../../runtime/timeout.ts";

/** The timeouts of a connection. Each is five seconds by default, which suits commands; 0 means no limit. */
export interface Timeouts {
  readonly connectMs: number;
  /**
   * This limit and the next are enforced by the server, so that it ends statements that this process has given up on.
   */
  readonly statementMs: number;
  readonly lockMs: number;
  /** Ends the transaction of a process that is paused, so that it does not block the others. */
  readonly idleInTransactionMs: number;
}

export interface ConnectOptions extends Partial<Timeouts> {
  /** The default is 1. */
  readonly maxConnections?: number;
  /** The time without a query after which a connection closes; by default none closes. */
  readonly idleSeconds?: number;
  /** The schema of the tables, so that environments can share a database. The default is that of the server. */
  readonly schema?: string | undefined;
  /** Whether a commit waits for the disk. The default is that of the server. */
  readonly waitsForDisk?: false;
  /**
   * Whether to accept a standby, which shows earlier data and rejects writes. By default the connection to it fails.
   */
  readonly acceptsStandby?: true;
}

export const COMMAND_TIMEOUT_MS = 5_000;

/** A pool that opens its connections when they are first used. */
export function connect(url: string, options: ConnectOptions): SQL {
  const { maxConnections = 1, connectMs = COMMAND_TIMEOUT_MS, statementMs = COMMAND_TIMEOUT_MS } = options;
  const { lockMs = COMMAND_TIMEOUT_MS, idleInTransactionMs = COMMAND_TIMEOUT_MS } = options;
  return new SQL(url, {
    // The variable PGDATABASE overrides the database in the URL; this option overrides both.
    ...databaseOf(url),
    max: maxConnections,
    connectionTimeout: connectMs / 1000,
    idleTimeout: options.idleSeconds ?? 0,
    bigint: true,
    connection: {
      application_name: applicationName(options.schema),
      ...(options.schema !== undefined && { search_path: options.schema }),
      // A standby rejects this parameter, and with it the connection.
      ...(options.acceptsStandby !== true && { transaction_read_only: "off" }),
      // A statement must see what was committed before it began, whatever the server's default is.
      default_transaction_isolation: "read committed",
      // Every statement has an index. A cached plan from a time when the table was small would scan the grown table.
      enable_seqscan: "off",
      // A custom plan relies on statistics, which are out of date after a table has grown fast.
      plan_cache_mode: "force_generic_plan",
      // Compiling takes longer than these short statements run.
      jit: "off",
      ...(options.waitsForDisk === false && { synchronous_commit: "off" }),
      statement_timeout: statementMs,
      lock_timeout: lockMs,
      idle_in_transaction_session_timeout: idleInTransactionMs,
    },
  });
}

/** Runs `work` on a connection of its own, within the time that connecting may take or within `maxMs`. */
export async function withConnection<T>(
  url: string,
  options: ConnectOptions,
  work: (sql: SQL) => Promise<T>,
  maxMs = options.connectMs ?? COMMAND_TIMEOUT_MS,
): Promise<T> {
  const sql = connect(url, { ...options, maxConnections: 1 });
  try {
    return await withTimeout(maxMs, work(sql));
  } finally {
    void sql.close({ timeout: 0 });
  }
}

/** The name of a session in pg_stat_activity, such as `petstore production 1.3.0`. */
function applicationName(schema: string | undefined): string {
  return `${earlierApplicationName(schema)} ${packageJson.version}`;
}

/** The name up to release 1.2.0, whose servers are not in the table of servers. */
export function earlierApplicationName(schema: string | undefined): string {
  return schema === undefined ? "petstore" : `petstore ${schema}`;
}

function databaseOf(url: string): { database?: string } {
  const database = decodeURIComponent(new URL(url).pathname.slice(1));
  return database === "" ? {} : { database };
}

/**
 * The first of the two numbers of each advisory lock of this program. Idempotent requests are locked by single numbers,
 * which differ from all pairs.
 */
export const LOCK_SPACE = 0x70657473;

export const MIGRATIONS_LOCK = 1;
export const COPY_LOCK = 2;

/** Takes a lock that is held until the session ends. Returns whether it became free in time. */
export function takeLock(sql: SQL, lock: number, maxMs: number): Promise<boolean> {
  return pollUntil(true, maxMs, async () => {
    const [{ locked }] = await sql<[{ locked: boolean }]>`
      SELECT pg_try_advisory_lock(${LOCK_SPACE}, ${lock}) AS locked`;
    return locked;
  });
}

const POLL_MS = 50;

/** Repeats `read` until it returns the wanted value, for up to `maxMs`. Returns the last value. */
export async function pollUntil<T>(wanted: T, maxMs: number, read: () => Promise<T>): Promise<T> {
  const deadline = scheduler.now() + maxMs;
  for (;;) {
    const value = await read();
    if (value === wanted || scheduler.now() > deadline) return value;
    await scheduler.sleep(POLL_MS);
  }
}

export async function tableExists(sql: SQL, name: string): Promise<boolean> {
  const [found] = await sql<[{ exists: boolean }]>`SELECT to_regclass(${name}) IS NOT NULL AS exists`;
  return found.exists;
}

/**
 * A common table expression that takes the lock for the next identifier of a table, and holds it until the transaction
 * ends. So identifiers become visible in ascending order, and a reader that continues after the last identifier it saw
 * misses none.
 *
 * The lock is the oid of the table, because another schema can have a table of the same name.
 */
export function nextIdLock(table: string): string {
  return `next_id_lock AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(${LOCK_SPACE}, '${table}'::regclass::oid::int))`;
}

/**
 * The SQLSTATE with which a standby rejects the connection: "transaction read-write mode must be set before any query".
 */
const STANDBY_STATE = "25001";

export function isStandby(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno === STANDBY_STATE;
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
const DOWN_STATES = [STANDBY_STATE, "25006", "28", "3D000", "55000", "57P03", "F0"];
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
