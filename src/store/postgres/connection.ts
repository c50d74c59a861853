import { SQL } from "bun";
import { messageOf, Unavailable } from "../../api/errors.ts";
import { hostUrls } from "../../text/host-urls.ts";
import { scheduler, DeadlineExceeded } from "../../runtime/event-loop.ts";

/** By default five seconds each, as commands need them. 0 is no limit. */
export interface Timeouts {
  readonly connectMs: number;
  /** The server's own limits, so that it ends what this process has given up on. */
  readonly statementMs: number;
  readonly lockMs: number;
  /** A process that is paused in the middle of a transaction must not block the others. */
  readonly idleInTransactionMs: number;
}

export interface ConnectOptions extends Partial<Timeouts> {
  /** By default one. */
  readonly maxConnections?: number;
  /** The schema of the tables, so that environments can share a database; by default the server's. */
  readonly schema?: string | undefined;
  /** Whether a commit waits for the disk; by default as the server is configured. */
  readonly waitsForDisk?: false;
  /** By default a standby, which shows earlier data and accepts no writes, rejects the connection. */
  readonly acceptsStandby?: true;
}

export const COMMAND_TIMEOUT_MS = 5_000;

/** A pool that opens its connections when they are first used. */
export function connect(url: string, options: ConnectOptions): SQL {
  const { maxConnections = 1, connectMs = COMMAND_TIMEOUT_MS, statementMs = COMMAND_TIMEOUT_MS } = options;
  const { lockMs = COMMAND_TIMEOUT_MS, idleInTransactionMs = COMMAND_TIMEOUT_MS } = options;
  return new SQL(url, {
    // The variable PGDATABASE overrides the database in the URL; an option overrides both.
    ...databaseOf(url),
    max: maxConnections,
    connectionTimeout: connectMs / 1000,
    bigint: true,
    connection: {
      application_name: applicationName(options.schema),
      ...(options.schema !== undefined && { search_path: options.schema }),
      // A standby cannot turn this off.
      ...(options.acceptsStandby !== true && { transaction_read_only: "off" }),
      // A statement must see what was committed before it began, whatever the server's default is.
      default_transaction_isolation: "read committed",
      // Every statement has an index. A plan made while a table was small is cached and would scan the grown table.
      enable_seqscan: "off",
      // A plan for the values at hand trusts statistics, which are out of date after a table has grown fast.
      plan_cache_mode: "force_generic_plan",
      // Compilation takes longer than these short statements do.
      jit: "off",
      ...(options.waitsForDisk === false && { synchronous_commit: "off" }),
      statement_timeout: statementMs,
      lock_timeout: lockMs,
      idle_in_transaction_session_timeout: idleInTransactionMs,
    },
  });
}

/** The name of a session in pg_stat_activity, such as `petstore production`. */
export function applicationName(schema: string | undefined): string {
  return schema === undefined ? "petstore" : `petstore ${schema}`;
}

function databaseOf(url: string): { database?: string } {
  const database = decodeURIComponent(new URL(url).pathname.slice(1));
  return database === "" ? {} : { database };
}

/** The address of a database without user and password, for messages. */
export function addressOf(url: string): string {
  const urls = hostUrls(url).map((each) => new URL(each));
  return urls.map(({ host }) => host).join(",") + (urls[0]?.pathname ?? "");
}

/**
 * Advisory locks are numbers whose meaning their users agree on. These are pairs of numbers, so they differ from the
 * single numbers under which idempotent requests are locked.
 */
export const LOCK_SPACE = 0x70657473;

export const MIGRATIONS_LOCK = 1;
export const COPY_LOCK = 2;

/** Takes a lock that is held until the session ends. Returns whether it was free in time. */
export function takeLock(sql: SQL, lock: number, maxMs: number): Promise<boolean> {
  return pollUntil(true, maxMs, async () => {
    const [{ locked }] = await sql<[{ locked: boolean }]>`
      SELECT pg_try_advisory_lock(${LOCK_SPACE}, ${lock}) AS locked`;
    return locked;
  });
}

const POLL_MS = 50;

/** Repeats `read` until it returns the wanted value, for so long. Returns the last value. */
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
 * Each promotion of a standby begins a timeline, with a higher number: the first eight digits, hexadecimal, of the
 * names of its files.
 */
export const TIMELINE = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4";

/** A standby rejects the connection with "transaction read-write mode must be set before any query". */
const STANDBY_STATE = "25001";

export function isStandby(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno === STANDBY_STATE;
}

/** With a message that says what is wrong. */
export function withExplanation(error: unknown): unknown {
  return isStandby(error) ? new Error("the server is a standby", { cause: error }) : error;
}

/** SQLSTATEs and classes of them that are not about the statement: the same one can succeed later. */
const TRANSIENT_STATES = [
  "08", // connection exceptions
  STANDBY_STATE,
  "25006", // read-only: the server has become a standby
  "25P03", // idle in a transaction for too long
  "28", // the login is rejected, for example while the password is changed
  "3D000", // the database does not exist
  "40", // rolled back: deadlock
  "42501", // no privilege, also that to connect to the database
  "53", // out of connections, memory or disk
  "55000", // the database allows no connections
  "55P03", // a lock was not available in time, or at once with NOWAIT
  "57", // shutting down, starting up, or cancelled by statement_timeout
  "58", // a failure of the server's disk
  "F0", // a configuration file with errors
];

/** Of those, the ones after which every other statement fails as well. */
const DOWN_STATES = [STANDBY_STATE, "25006", "28", "3D000", "55000", "57P03", "F0"];
const CANNOT_CONNECT =
  /^ERR_POSTGRES_(?:CONNECTION_(?:REFUSED|FAILED|TIMEOUT)|TLS_|UNEXPECTED_MESSAGE|SASL_|\w+_AUTHENTICATION_METHOD)/;
/** What the runtime says of the file of sslrootcert, each time it connects. */
const NO_AUTHORITY = /^(?:Unable to access caFile path|Failed to load CA file)/;

/** Turns a transient error of PostgreSQL into Unavailable; returns every other error as it is. */
export function toUnavailable(error: unknown): unknown {
  if (!(error instanceof Error) || !isTransient(error)) return error;
  return new Unavailable(`PostgreSQL: ${messageOf(withExplanation(error))}`, { cause: error });
}

function isTransient(error: Error): boolean {
  if (isServerDown(error)) return true;
  if (!(error instanceof SQL.PostgresError)) return false;
  return startsWithAny(error.errno, TRANSIENT_STATES) || error.code.startsWith("ERR_POSTGRES_CONNECTION_");
}

/** Whether the server as a whole cannot be used, and not only the connection of one statement. */
export function isServerDown(error: unknown): boolean {
  if (error instanceof DeadlineExceeded || isTlsError(error)) return true;
  if (!(error instanceof SQL.PostgresError)) return false;
  return startsWithAny(error.errno, DOWN_STATES) || CANNOT_CONNECT.test(error.code);
}

/** An expired certificate, a handshake that fails: the runtime's own errors, with codes of OpenSSL or of the system. */
function isTlsError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof SQL.PostgresError) return false;
  return ("code" in error && "errno" in error) || NO_AUTHORITY.test(error.message);
}

export function isLocked(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno === "55P03";
}

/** Whether the server itself reported the error, which shows that it is reachable. */
export function isFromServer(error: unknown): boolean {
  return error instanceof SQL.PostgresError && error.errno !== undefined;
}

function startsWithAny(state: string | undefined, prefixes: readonly string[]): boolean {
  return state !== undefined && prefixes.some((prefix) => state.startsWith(prefix));
}
