import { SQL } from "bun";
import packageJson from "../../../package.json" with { type: "json" };
import { withTimeout } from "../../runtime/timeout.ts";

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
  /** Called with the reason when a connection is closed. */
  readonly onClose?: (reason: unknown) => void;
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
    ...(options.onClose && { onclose: options.onClose }),
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
  return sessionPrefix(schema) + packageJson.version;
}

/** What the names of the sessions of an environment begin with. */
export function sessionPrefix(schema: string | undefined): string {
  return schema === undefined ? "petstore " : `petstore ${schema} `;
}

function databaseOf(url: string): { database?: string } {
  const database = decodeURIComponent(new URL(url).pathname.slice(1));
  return database === "" ? {} : { database };
}
