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
import { SQLITE_MIGRATIONS } from "./migrations.ts";
import { OpenFiles, type RescueOptions } from "./open-files.ts";
import type { SqlitePetJson } from "./pet-json.ts";
import { OperatorReadThread } from "./operator-read-thread.ts";
import { type ScheduledTimer, scheduler } from "../../runtime/scheduler.ts";
import { sqliteDatabase } from "./dialect.ts";
import { STATEMENT_WAIT_MS, TRANSACTION_WAIT_MS } from "./waits.ts";
import { SqliteClientStore, type SqliteClientStoreOptions } from "./client-store.ts";

export interface SqliteStores extends DatabaseStores {
  readonly petJson: SqlitePetJson;
  readonly commitQueueLength: () => number;
  close(): Promise<void>;
}

interface SqliteOptions extends SqliteClientStoreOptions {
  readonly use?: TableUse | undefined;
  /** What a server does when the files of the database are deleted or replaced. */
  readonly rescue?: RescueOptions;
  /** Whether reads of operators run in a thread, as in a server: a command has nobody who would wait meanwhile. */
  readonly operatorReadsInThread?: boolean;
}

/** Opens the stores. One server and any number of commands can have the same file open at once. */
export function openSqlite(path: string, options: SqliteOptions = {}): SqliteStores {
  const files = new OpenFiles(path);
  const opening = {
    migrations: SQLITE_MIGRATIONS,
    use: options.use,
    synchronous: "FULL",
    cacheKiB: 16 * 1024,
    busyTimeoutMs: STATEMENT_WAIT_MS.stores,
    beforeCommit: files.check,
    keepsFiles: options.rescue !== undefined,
  } as const;
  const { connection, store } = openDatabaseFor(path, opening, (connection) => {
    checkColumns(connection);
    const store = new SqliteClientStore(connection, options);
    files.watch(connection, options.rescue);
    return { connection, store };
  });
  const database = auditedDatabase(
    sqliteDatabase(connection, { waitMs: TRANSACTION_WAIT_MS.operators }),
    options.onAudit,
  );
  // Counts and what servers share wait for no disk and delay no request. A power failure may lose the last seconds.
  const unsynced = sqliteDatabase(connection, {
    waitMs: TRANSACTION_WAIT_MS.background,
    waitsForDisk: false,
  });
  const stores = {
    ...adminStores(database, store.operatorPetStore, { retentionNow: options.retentionNow }),
    clientStore: store,
    usageHistory: new SqlUsageHistoryStore(unsynced),
    serverReports: new SqlServerReportStore(unsynced),
    questions: new SqlQuestionStore(unsynced),
  };
  const readThread = options.operatorReadsInThread ? new OperatorReadThread(path) : undefined;
  const inThread = readThread && { ...database, read: readThread.read };
  const indexing = options.rescue && lookForPetsOfOtherProcesses(store);
  return {
    ...stores,
    petJson: store.petJson,
    storedValues: new SqlValueStore(database),
    webhooks: new SqlWebhookStore(database),
    operatorReads: inThread ? adminStores(inThread, store.operatorPetStoreOn(inThread)) : stores,
    commitQueueLength: () => store.commitQueueLength,
    async close() {
      indexing?.close();
      files.stop();
      await readThread?.close();
      await store.close();
    },
  };
}

const LOOK_EVERY_MS = 1_000;

/** Makes a server look for pets of other processes that are not read from the index yet. */
function lookForPetsOfOtherProcesses(store: SqliteClientStore): ScheduledTimer {
  const look = () => store.indexPetsOfOtherProcesses();
  look();
  const looking = scheduler.setInterval(look, LOOK_EVERY_MS);
  looking.unref();
  return looking;
}
