import { existsSync } from "node:fs";
import type { TableUse } from "../sql/migrations.ts";
import { type Statements, type Steps } from "../sql/steps.ts";
import { canonicalRowOf, selectCount, insertRows, selectRows } from "../sql/table-rows.ts";
import {
  type Counters,
  KEY_REVISION,
  type NewTables,
  type SharedTables,
  type TableReader,
  type TableStore,
} from "../sql/table-store.ts";
import { EMPTY_TABLES, PETS, type Row, type Table, TABLES_WITH_IDS } from "../sql/tables.ts";
import type { Connection } from "./connection.ts";
import { sqliteUnavailable } from "./errors.ts";
import { SQLITE_DIALECT } from "./dialect.ts";
import { openDatabase } from "./database.ts";
import { publishDatabase, removeDatabase } from "./durable-files.ts";
import { SQLITE_MIGRATIONS } from "../sql/migration-steps.ts";
import { indexRecentPets, NO_PET_IS_RECENT } from "./recent-pets.ts";
import { inspectSchema, recordBackup, setLastId } from "./snapshot.ts";
import { PAUSE_MS, STATEMENT_WAIT_MS, TRANSACTION_WAIT_MS } from "./waits.ts";
import { scheduler } from "../../runtime/scheduler.ts";

const OPTIONS = {
  migrations: SQLITE_MIGRATIONS,
  synchronous: "NORMAL",
  cacheKiB: 16 * 1024,
  busyTimeoutMs: STATEMENT_WAIT_MS.wholeDatabase,
} as const;

/** The tables of the database in a file. Reading them migrates those of an earlier release only with a Migrator. */
export function sqliteTables(path: string, use: TableUse = "existing"): TableStore {
  return {
    exists: async () => existsSync(path),
    schema: async () => inspectSchema(path),
    read: async () => openReader(path, use),
    share: async () =>
      new SqliteSharedTables(openDatabase(path, { ...OPTIONS, busyTimeoutMs: STATEMENT_WAIT_MS.none })),
    create: async () => createTables(path),
    recordBackup: async (at) => recordBackup(path, at),
  };
}

/** Reading this many rows takes a few milliseconds and less than a megabyte. */
const ROWS_PER_BATCH = 2_000;

function openReader(path: string, use: TableUse = "existing"): TableReader {
  const connection = openDatabase(path, { ...OPTIONS, use });
  connection.exec("BEGIN");
  return new SqliteTableReader(connection);
}

/** Reads the tables in one transaction, which sees the database as it was at its first read. */
class SqliteTableReader implements TableReader {
  constructor(private readonly connection: Connection) {}

  async count(table: Table): Promise<number> {
    return Number(this.connection.value(selectCount(table)));
  }

  async *rows(table: Table): AsyncGenerator<readonly Row[]> {
    const select = selectRows(table, SQLITE_DIALECT);
    const statement = this.connection.prepared<Record<string, string | null>>(select);
    const canonical = canonicalRowOf(table);
    let batch: Row[] = [];
    try {
      for (const values of statement.iterate()) {
        if (batch.push(canonical(Object.values(values))) < ROWS_PER_BATCH) continue;
        yield batch;
        batch = [];
      }
    } catch (error) {
      throw sqliteUnavailable(error);
    }
    if (batch.length > 0) yield batch;
  }

  async counters(): Promise<Counters> {
    const lastId = (table: string) =>
      this.connection.value("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?", table);
    const ids = TABLES_WITH_IDS.map((table) => [table, integer(lastId(table))] as const);
    const revision = integer(this.connection.value("SELECT revision FROM key_revision"));
    return Object.fromEntries([...ids, [KEY_REVISION, revision]]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.connection.close();
  }
}

function integer(value: unknown): bigint {
  return typeof value === "bigint" ? value : 0n;
}

/**
 * How long others count as writing after their last write. A server with requests writes at least every two seconds.
 */
const OTHERS_WRITE_MS = 5_000;
/** The length of the log, in pages of 4 KiB, at which it is copied to the database. Each copy waits for the disk. */
const CHECKPOINT_PAGES = 8_000;
/** The length while others write. A server copies the log at 1,000 pages, so this process does it earlier. */
const CHECKPOINT_PAGES_WHILE_OTHERS_WRITE = 400;

class SqliteSharedTables implements SharedTables {
  readonly dialect = SQLITE_DIALECT;
  readonly rowsPerTransaction = 500;
  #dataVersion: unknown;
  #othersWroteAt = -Infinity;
  #checkpointPages = 0;

  constructor(private readonly connection: Connection) {
    this.#dataVersion = connection.dataVersion();
  }

  async write<T>(statements: Statements<T>): Promise<T> {
    await this.#pauseWhileOthersWrite();
    const work = () => this.connection.runAll(statements);
    return this.connection.transactionWhenUnlocked(work, TRANSACTION_WAIT_MS.imports);
  }

  /** Puts pets behind the recent ones. */
  *onWrite({ name }: Table): Steps<void> {
    if (name === PETS.name) yield* indexRecentPets();
  }

  async makeDurable(): Promise<void> {
    this.connection.exec("PRAGMA synchronous = FULL");
  }

  /** Leaves the lock free for a moment while a server writes: the server retries its writes every few milliseconds. */
  async #pauseWhileOthersWrite(): Promise<void> {
    const version = this.connection.dataVersion();
    if (version !== this.#dataVersion) this.#othersWroteAt = scheduler.now();
    this.#dataVersion = version;
    const othersWrite = scheduler.now() - this.#othersWroteAt < OTHERS_WRITE_MS;
    this.#checkpointAt(othersWrite ? CHECKPOINT_PAGES_WHILE_OTHERS_WRITE : CHECKPOINT_PAGES);
    if (othersWrite) await scheduler.sleep(PAUSE_MS.beforeImport);
  }

  #checkpointAt(pages: number): void {
    if (pages === this.#checkpointPages) return;
    this.#checkpointPages = pages;
    this.connection.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.connection.close();
  }
}

/** Creates the tables in a file next to `path`, which must not exist. Publishing renames the file to `path`. */
function createTables(path: string): NewTables {
  const unpublished = `${path}.copy`;
  removeDatabase(unpublished);
  const connection = openDatabase(unpublished, OPTIONS);
  connection.exec(EMPTY_TABLES);
  return {
    async insert(table, rows) {
      connection.runAll(() => insertRows(table, rows, { dialect: SQLITE_DIALECT }));
    },
    async complete(counters) {
      connection.transaction(() => {
        for (const table of TABLES_WITH_IDS) setLastId(connection, table, counters[table] ?? 0n);
        connection.value("UPDATE key_revision SET revision = ?", counters[KEY_REVISION] ?? 0n);
        connection.value(NO_PET_IS_RECENT);
      });
    },
    read: async () => openReader(unpublished),
    async publish() {
      connection.value("PRAGMA wal_checkpoint(TRUNCATE)");
      connection.close();
      publishDatabase(unpublished, path);
    },
    async [Symbol.asyncDispose]() {
      connection.close();
      removeDatabase(unpublished);
    },
  };
}
