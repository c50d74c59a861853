/* What archives read and write: all rows of a database, or many at a time. */

import type { Quota } from "../../domain/rate-limit.ts";
import type { SchemaState } from "./migrations.ts";
import type { SqlDatabase, Steps } from "./steps.ts";
import type { NewRow, Row, Table } from "./tables.ts";

/** The numbers outside of rows: the last identifier of each table that assigns them, and the revision of the keys. */
export type Counters = Readonly<Record<string, bigint>>;
export const KEY_REVISION = "key_revision";

/** Quotas by the key. */
export type KeyQuotas = readonly (readonly [number, Quota])[];

/** A database as it is at one moment. */
export interface TableReader extends AsyncDisposable {
  /** Counts the rows of a table. */
  count(table: Table): Promise<number>;
  /** Reads the rows in batches. Several tables can be read at the same time, each of them once. */
  rows(table: Table): AsyncIterable<readonly Row[]>;
  counters(): Promise<Counters>;
  /** Throws if servers use another database by now, as after a promotion. It is the last call. */
  confirm?(): Promise<void>;
}

/**
 * Writes in short transactions while servers write to the same tables. They do not wait for the disk: after a power
 * failure, all transactions since some moment may be missing.
 */
export interface SharedTables extends AsyncDisposable, Pick<SqlDatabase, "dialect" | "write"> {
  /** Storing this many rows takes a few milliseconds, in which the writes of servers wait. */
  readonly rowsPerTransaction: number;
  /** Runs after each write, in its transaction. */
  onWrite(table: Table, rows: readonly NewRow[]): Steps<void>;
  /** Makes later transactions, and with them all earlier ones, durable when they resolve. */
  makeDurable(): Promise<void>;
}

/** A new database, which nobody else sees before it is published. */
export interface NewTables extends AsyncDisposable {
  /** Adds all of these rows or none. They have all columns. */
  insert(table: Table, rows: readonly NewRow[]): Promise<void>;
  /** Sets the counters after all rows are inserted. */
  complete(counters: Counters): Promise<void>;
  /** Reads the rows that were inserted. */
  read(): Promise<TableReader>;
  /**
   * Makes this the database of the environment in one step. Nothing can be written afterwards. Throws OutcomeUnknown if
   * it may have been done without a response.
   */
  publish(publication: Publication): Promise<void>;
}

export interface Publication {
  /** The name that the present database gets; undefined if there is none. */
  readonly replaced?: string | undefined;
}

/** The database of one environment, which may not exist yet. */
export interface TableStore {
  exists(): Promise<boolean>;
  /** Reads the state of the tables, which exist, and changes nothing. */
  schema(): Promise<SchemaState>;
  /** Reads the database. Unless it was opened for that, tables of an earlier release are an error. */
  read(): Promise<TableReader>;
  /** Opens the database for shared writes, after creating it if it is missing. */
  share(): Promise<SharedTables>;
  /** Creates a new database. What an interrupted call has left is discarded. */
  create(): Promise<NewTables>;
  /** Records the time of a backup for the metrics. It waits for no standby. */
  recordBackup(at: number): Promise<void>;
}
