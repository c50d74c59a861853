/*
 * How long this program waits while another process has a database of SQLite locked. A server holds the lock for
 * milliseconds at a time, an import for 2 or 3, and a migration for as long as it takes.
 */

import { MINUTE_MS } from "../../text/time-units.ts";

/** How long a statement waits (`PRAGMA busy_timeout`). The wait blocks its thread. */
export const STATEMENT_WAIT_MS = {
  /** The lock of a process, the quotas, which are saved again, and imports, which repeat their transactions. */
  none: 0,
  /** The statements of the stores. The wait blocks the event loop, so transactions are repeated, too. */
  stores: 5,
  /** A checkpoint of a server, in a thread. Writes wait for it, so it is tried again later. */
  checkpoint: 20,
  /** The reads of operators, in a thread of their own. */
  readThread: 1_000,
  /** Opening a database, which another process may be creating or migrating. */
  opening: 5_000,
  /** Reading, checking and copying a whole database. */
  wholeDatabase: 5_000,
} as const;

/** How long a transaction of the stores is repeated. Other work of the event loop runs in between. */
export const TRANSACTION_WAIT_MS = {
  /** The usage history and what servers report and ask. Each is written again within two seconds. */
  background: 1_000,
  /** The writes of clients. */
  clients: 2_000,
  /** The changes of operators. */
  operators: 5_000,
  /** A batch of an import, while a server writes. */
  imports: MINUTE_MS,
} as const;

/** How long a process pauses while another one has the lock. */
export const PAUSE_MS = {
  /**
   * Before a transaction of the stores is repeated: a random time up to this one. A busy server leaves the lock free
   * for less than 1 ms at a time.
   */
  transaction: 2,
  /** Before writes of clients that share a transaction are repeated: a random time up to this one. */
  groupCommit: 4,
  /** Before the write-ahead log is turned on again. The pause blocks the thread. */
  opening: 5,
  /** Before a command looks again whether another process has a database open. The pause blocks the thread. */
  openElsewhere: 20,
  /** Before each transaction of an import while others write, which leaves them the lock. */
  beforeImport: 2,
} as const;

/** How long a command waits until no other process has a database open. Other commands end within this time. */
export const OPEN_ELSEWHERE_MS = 3_000;
