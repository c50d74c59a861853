import type { DatabaseStores } from "../../domain/ports/stores.ts";
import { auditedDatabase } from "../audit.ts";
import { adminStores } from "../admin-stores.ts";
import type { TableUse } from "../sql/migrations.ts";
import { SqlQuestionStore } from "../questions.ts";
import { SqlServerReportStore } from "../server-reports.ts";
import { SqlValueStore } from "../stored-values.ts";
import { SqlUsageHistoryStore } from "../usage-history.ts";
import { SqlWebhookStore } from "../webhooks.ts";
import { openDatabaseFor } from "./database.ts";
import { checkColumns } from "./migrate.ts";
import { SQLITE_MIGRATIONS } from "../sql/migration-steps.ts";
import { OpenFiles, type RescueOptions } from "./open-files.ts";
import type { SqlitePetJson } from "./pet-json.ts";
import { OperatorReadThread } from "./operator-read-thread.ts";
import { type ScheduledTimer, scheduler } from "../../runtime/scheduler.ts";
import { WriteAheadLog, type LogEvents } from "./write-ahead-log.ts";
import { openForServerReads } from "./database-file.ts";
import type { Connection } from "./connection.ts";
import { STATEMENT_WAIT_MS, TRANSACTION_WAIT_MS } from "./waits.ts";
import { SqliteClientStore, type SqliteClientStoreOptions } from "./client-store.ts";

export interface SqliteStores extends DatabaseStores {
  readonly petJson: SqlitePetJson;
  readonly commitQueueLength: () => number;
  /** Returns the length of the log of a server. */
  readonly logBytes: (() => number) | undefined;
  close(): Promise<void>;
}

interface SqliteOptions extends Omit<SqliteClientStoreOptions, "disk"> {
  readonly use?: TableUse | undefined;
  /** What a server does when the files of the database are deleted or replaced. */
  readonly rescue?: RescueOptions;
  /**
   * What a server learns of its log. A server lets nobody wait for the disk but who wrote, and reads for operators in a
   * thread. A command has nobody who would wait meanwhile.
   */
  readonly server?: LogEvents | undefined;
}

/** Opens the stores. One server and any number of commands can have the same file open at once. */
export function openSqlite(path: string, options: SqliteOptions = {}): SqliteStores {
  const files = new OpenFiles(path);
  const opening = {
    migrations: SQLITE_MIGRATIONS,
    use: options.use,
    // Others see the commits of a command when they are on the disk. A server syncs them itself.
    synchronous: options.server ? "NORMAL" : "FULL",
    cacheKiB: options.server ? WRITE_CACHE_KIB : READ_CACHE_KIB,
    busyTimeoutMs: STATEMENT_WAIT_MS.stores,
    beforeCommit: files.check,
    keepsFiles: options.rescue !== undefined,
  } as const;
  const { store, log } = openDatabaseFor(path, opening, (connection) => {
    checkColumns(connection);
    const disk = options.server && openDisk(path, connection, options.server);
    const store = new SqliteClientStore(connection, { ...options, disk });
    files.watch(connection, options.rescue);
    return { store, log: disk?.log };
  });
  const database = auditedDatabase(
    store.databaseFor({ maxBusyMs: TRANSACTION_WAIT_MS.operators }),
    options.onAudit,
  );
  // Counts and what servers share wait for no disk and delay no request. A power failure may lose the last seconds.
  const unsynced = store.databaseFor({ maxBusyMs: TRANSACTION_WAIT_MS.background, waitsForDisk: false });
  const stores = {
    ...adminStores(database, store.operatorPetStore, { retentionNow: options.retentionNow }),
    clientStore: store,
    usageHistory: new SqlUsageHistoryStore(unsynced),
    serverReports: new SqlServerReportStore(unsynced),
    questions: new SqlQuestionStore(unsynced),
  };
  const readThread = options.server && new OperatorReadThread(path);
  const inThread = readThread && { ...database, read: shownReads(readThread, store) };
  const indexing = options.rescue && lookForPetsOfOtherProcesses(store);
  return {
    ...stores,
    petJson: store.petJson,
    storedValues: new SqlValueStore(database),
    webhooks: new SqlWebhookStore(database),
    operatorReads: inThread ? adminStores(inThread, store.operatorPetStoreOn(inThread)) : stores,
    commitQueueLength: () => store.commits.length,
    logBytes: log && (() => log.bytes),
    async close() {
      indexing?.close();
      files.stop();
      await readThread?.close();
      await store.commits.close();
      await log?.close();
      await store.close();
    },
  };
}

/** Opens what lets nobody wait for the disk but who wrote. */
function openDisk(path: string, connection: Connection, events: LogEvents) {
  connection.exec("PRAGMA wal_autocheckpoint = 0");
  return {
    reads: openForServerReads(path, READ_CACHE_KIB),
    log: new WriteAheadLog(path, connection, events),
  };
}

/** Reads in a thread, which sees commits before they are on the disk. */
function shownReads(thread: OperatorReadThread, { commits }: SqliteClientStore): OperatorReadThread["read"] {
  return async (statements) => {
    const result = await thread.read(statements);
    await commits.shown();
    return result;
  };
}

const READ_CACHE_KIB = 16 * 1024;
const WRITE_CACHE_KIB = 8 * 1024;

const LOOK_EVERY_MS = 1_000;

/** Makes a server look for pets of other processes that are not read from the index yet. */
function lookForPetsOfOtherProcesses(store: SqliteClientStore): ScheduledTimer {
  const look = () => store.indexPetsOfOtherProcesses();
  look();
  const looking = scheduler.setInterval(look, LOOK_EVERY_MS);
  looking.unref();
  return looking;
}
