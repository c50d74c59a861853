import { SQL } from "bun";

export interface Timeouts {
  readonly connectMs: number;
  /** The server's own limits, so that it ends what this process has given up on. */
  readonly statementMs: number;
  readonly lockMs: number;
  /** A process that is paused in the middle of a transaction must not block the others. */
  readonly idleInTransactionMs: number;
}

export interface ConnectOptions extends Timeouts {
  readonly maxConnections: number;
  /** The schema of the tables, so that environments can share a database; by default the server's. */
  readonly schema?: string | undefined;
  /** Whether a commit waits for the disk; by default as the server is configured. */
  readonly waitsForDisk?: false;
}

/** A pool that opens its connections when they are first used. */
export function connect(url: string, options: ConnectOptions): SQL {
  return new SQL(url, {
    // The variable PGDATABASE overrides the database in the URL; an option overrides both.
    ...databaseOf(url),
    max: options.maxConnections,
    connectionTimeout: options.connectMs / 1000,
    bigint: true,
    connection: {
      application_name: applicationName(options.schema),
      ...(options.schema !== undefined && { search_path: options.schema }),
      // A statement must see what was committed before it began, whatever the server's default is.
      default_transaction_isolation: "read committed",
      // Every statement has an index. A plan made while a table was small is cached and would scan the grown table.
      enable_seqscan: "off",
      // A plan for the values at hand trusts statistics, which are out of date after a table has grown fast.
      plan_cache_mode: "force_generic_plan",
      // Compilation takes longer than these short statements do.
      jit: "off",
      ...(options.waitsForDisk === false && { synchronous_commit: "off" }),
      statement_timeout: options.statementMs,
      lock_timeout: options.lockMs,
      idle_in_transaction_session_timeout: options.idleInTransactionMs,
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
  const { host, pathname } = new URL(url);
  return host + pathname;
}
