import { SQL } from "bun";

export interface Timeouts {
  /** How long a connection may take to come about. */
  readonly connectMs: number;
  /** The server's own limits, so that nothing of ours goes on there after we have given up on it. */
  readonly statementMs: number;
  readonly lockMs: number;
  /** An instance that is paused in the middle of a transaction must not hold up the others. */
  readonly idleInTransactionMs: number;
}

export interface ConnectOptions extends Timeouts {
  /** Connections, at the most. */
  readonly max: number;
  /** Where the tables are, so that environments can share a database; the server's default otherwise. */
  readonly schema?: string | undefined;
}

/** A pool of connections, none of which is opened yet. */
export function connect(url: string, options: ConnectOptions): SQL {
  return new SQL(url, {
    // PGDATABASE would win over the database in the address, and only over that; an option wins over both.
    ...databaseOf(url),
    max: options.max,
    connectionTimeout: options.connectMs / 1000,
    bigint: true,
    connection: {
      application_name: "petstore",
      ...(options.schema !== undefined && { search_path: options.schema }),
      // What was committed before a statement began must be seen by it, whatever the server's default is.
      default_transaction_isolation: "read committed",
      // Every statement has an index to go by. A plan that was made while a table held little is kept for as long as
      // its statistics are, and would read the whole of what has become a large table.
      enable_seqscan: "off",
      // Statements this short are over before they could be compiled, which takes a third of a second.
      jit: "off",
      statement_timeout: options.statementMs,
      lock_timeout: options.lockMs,
      idle_in_transaction_session_timeout: options.idleInTransactionMs,
    },
  });
}

function databaseOf(url: string): { database?: string } {
  const database = decodeURIComponent(new URL(url).pathname.slice(1));
  return database === "" ? {} : { database };
}

/** Where a database is, without who may use it: for messages. */
export function addressOf(url: string): string {
  const { host, pathname } = new URL(url);
  return host + pathname;
}
