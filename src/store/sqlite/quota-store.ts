import { Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import { formatSubject, type Subject, type Quota } from "../../domain/rate-limit.ts";
import { toStored, fromStored } from "../../domain/stored-quota.ts";
import type { QuotaStore } from "../../domain/ports/rate-limiter.ts";
import type { Connection } from "./connection.ts";
import { sqliteUnavailable } from "./errors.ts";
import { OpenFiles, type RescueOptions } from "./open-files.ts";
import { openDatabaseFor } from "./database.ts";
import { renameDurably } from "../../runtime/own-files.ts";
import { removeDatabase } from "./durable-files.ts";
import type { Migration, TableUse } from "../sql/migrations.ts";
import { STATEMENT_WAIT_MS } from "./waits.ts";
import { LogCheckpoints } from "./write-ahead-log.ts";

export const QUOTA_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "standings",
    worksWith: "0.9.0",
    sql: `
      CREATE TABLE standings (
        subject TEXT PRIMARY KEY,
        minute_opened_at INTEGER NOT NULL,
        minute_used INTEGER NOT NULL,
        minute_refused_at INTEGER NOT NULL,
        minute_strikes INTEGER NOT NULL,
        day_opened_at INTEGER NOT NULL,
        day_used INTEGER NOT NULL,
        day_refused_at INTEGER NOT NULL,
        day_strikes INTEGER NOT NULL,
        banned_at INTEGER NOT NULL,
        banned_until INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
    `,
  },
];

/**
 * A row of counts, in the order of the columns. Times and counts are far below 2^53, so they are read as numbers: a
 * start reads many rows.
 */
type Row = Readonly<Record<string, string | number | bigint>>;

/** What a server does when its file was deleted or replaced. */
interface QuotaStoreOptions extends Omit<RescueOptions, "to"> {
  readonly use?: TableUse;
}

/**
 * Opens the store of counts and bans. It has a file of its own, so that saving counts and writing pets do not wait for
 * each other.
 *
 * `synchronous` is NORMAL: saved counts survive a crash of the process; a power failure may lose the last seconds. The
 * checkpoints of a server, which wait for the disk, run in a thread.
 */
export function openQuotaStore(path: string, options?: QuotaStoreOptions): QuotaStore {
  const opening = {
    migrations: QUOTA_MIGRATIONS,
    use: options?.use,
    synchronous: "NORMAL",
    cacheKiB: 4 * 1024,
    busyTimeoutMs: STATEMENT_WAIT_MS.none,
    integers: "number",
    keepsFiles: options !== undefined,
  } as const;
  try {
    return new SqliteQuotaStore(path, () => openDatabaseFor(path, opening, checked), options);
  } catch (error) {
    // An error without a cause means that the disk is full or read-only.
    throw error instanceof Error && error.cause === undefined ? error : withHint(error);
  }
}

/** Adds to the message how to start without the counts. */
export function withHint(error: unknown): Error {
  return new Error(`${messageOf(error)}; counts start anew when that file is moved away`, { cause: error });
}

/** The columns of the numbers of `toStored`, in its order. A later release may have added others. */
export const QUOTA_COLUMNS = [
  "minute_opened_at",
  "minute_used",
  "minute_refused_at",
  "minute_strikes",
  "day_opened_at",
  "day_used",
  "day_refused_at",
  "day_strikes",
  "banned_at",
  "banned_until",
] as const;
const COLUMNS = ["subject", ...QUOTA_COLUMNS].join(", ");
const SELECT_ALL = `SELECT ${COLUMNS} FROM standings`;
const SELECT_ONE = `${SELECT_ALL} WHERE subject = ?`;
const SAVE = `INSERT OR REPLACE INTO standings (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Checks the columns, so that a file that somebody has altered fails when it is opened. */
function checked(connection: Connection): Connection {
  connection.prepared(SELECT_ONE);
  return connection;
}

class SqliteQuotaStore implements QuotaStore {
  readonly #files: OpenFiles;
  #connection: Connection;
  /** Those of a server. A command leaves them to SQLite. */
  #checkpoints: LogCheckpoints | undefined;
  /** Resolves when the log has started anew. No transaction may run meanwhile. */
  #restarting: Promise<void> | undefined;

  constructor(
    private readonly path: string,
    private readonly open: () => Connection,
    private readonly options: QuotaStoreOptions | undefined,
  ) {
    this.#files = new OpenFiles(path);
    this.#connection = open();
    this.#watch();
  }

  #watch(): void {
    if (this.options === undefined) return;
    const { onRescue, onFailure } = this.options;
    void this.#checkpoints?.close();
    this.#checkpoints = new LogCheckpoints(this.path, this.#connection, onFailure);
    this.#connection.exec("PRAGMA wal_autocheckpoint = 0");
    const to = `${this.path}.rescued`;
    const replace = () => {
      removeDatabase(this.path);
      renameDurably(to, this.path);
      const lost = this.#connection;
      this.#connection = this.open();
      lost.close();
      this.#watch();
      onRescue();
    };
    this.#files.watch(this.#connection, { to, onRescue: replace, onFailure });
  }

  *load(): Generator<readonly [Subject, Quota]> {
    try {
      yield* quotasIn(this.#connection);
    } catch (error) {
      throw this.#readError(error);
    }
  }

  get isPaused(): boolean {
    this.#restarting ??= this.#checkpoints
      ?.makeRoom()
      // After an error of a sync, SQLite tries again with a transaction.
      ?.catch(() => this.#leaveCheckpointsToSqlite())
      .finally(() => (this.#restarting = undefined));
    return this.#restarting !== undefined;
  }

  #leaveCheckpointsToSqlite(): void {
    void this.#checkpoints?.close();
    this.#checkpoints = undefined;
    this.#connection.exec("PRAGMA wal_autocheckpoint = 1000");
  }

  save(changes: Iterable<readonly [Subject, Quota | undefined]>): void {
    this.#files.rescueIfLost();
    // Only a server that stops saves while it is paused.
    if (this.#restarting) this.#connection.exec(`PRAGMA busy_timeout = ${STATEMENT_WAIT_MS.wholeDatabase}`);
    this.#connection.transaction(() => {
      for (const [subject, quota] of changes) {
        const name = formatSubject(subject);
        if (quota === undefined) this.#connection.run("DELETE FROM standings WHERE subject = ?", name);
        else this.#connection.run(SAVE, name, ...toStored(quota));
      }
    });
  }

  find(subject: Subject): Quota | undefined {
    try {
      const row = this.#connection.get<Row>(SELECT_ONE, formatSubject(subject));
      return row && entryOf(row)[1];
    } catch (error) {
      throw this.#readError(error);
    }
  }

  close(): void {
    this.#files.stop();
    void this.#checkpoints?.close();
    this.#connection.close();
  }

  /** Explains an error of a read. A damaged page is noticed when it is read, perhaps long after the file was opened. */
  #readError(error: unknown): unknown {
    const fault = sqliteUnavailable(error);
    if (fault instanceof Unavailable) return fault;
    const reason = messageOf(error);
    return withHint(new Error(`cannot read the counts in ${this.path}: ${reason}`, { cause: error }));
  }
}

/** Reads all quotas, as a server has saved them. */
export function* quotasIn(connection: Connection): Generator<readonly [Subject, Quota]> {
  for (const row of connection.prepared<Row>(SELECT_ALL).iterate()) yield entryOf(row);
}

const KEY = "key:";
const ADDRESS = "address:";

/** Parses the column `subject`, such as `key:7` or `address:192.0.2.1`. */
function parseSubject(text: string): Subject {
  if (text.startsWith(KEY)) return { kind: "key", id: Number(text.slice(KEY.length)) };
  return { kind: "address", id: text.slice(ADDRESS.length) };
}

function entryOf(row: Row): readonly [Subject, Quota] {
  const [subject, ...numbers] = Object.values(row);
  return [parseSubject(String(subject)), fromStored(numbers.map(Number))];
}
