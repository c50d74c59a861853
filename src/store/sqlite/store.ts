import { Rejection, Unavailable } from "../../api/errors.ts";
import { FailureReporter } from "../../runtime/failure-reporter.ts";
import { encodePet, type NewPet } from "../../domain/resources.ts";
import type {
  InventoryStore,
  IdempotentRequest,
  OwnOrderUpdate,
  OrderPlacement,
  StateChange,
  Store,
  Stores,
  WriteResult,
} from "../../domain/ports.ts";
import { SqlKeyStore } from "../api-keys.ts";
import { auditedDatabase, type OnAudit, reportAudit, SqlAuditStore } from "../audit.ts";
import { BatchQueue } from "../batch-queue.ts";
import { type IdempotentOperation, InProgressRequests } from "../idempotency.ts";
import { SqlPolicyStore } from "../limit-policy.ts";
import { SqlOperatorStore } from "../operators.ts";
import { placeOrder, SqlInventoryStore, SqlReadStore, updateOrder } from "../orders.ts";
import { PET_ROWS } from "../rows.ts";
import { SqlQuestionStore } from "../questions.ts";
import { SqlServerReportStore } from "../server-reports.ts";
import { SqlSettingsStore } from "../settings.ts";
import { TABLES } from "../tables.ts";
import { SqlUsageHistoryStore } from "../usage-history.ts";
import { SqlWebhookStore } from "../webhooks.ts";
import { type Connection, isBusy } from "./connection.ts";
import { openDatabaseFor } from "./database.ts";
import { IdempotencyRecords } from "./idempotency.ts";
import { SQLITE_MIGRATIONS } from "./migrations.ts";
import { OpenFiles, type RescueOptions } from "./open-files.ts";
import { SqlitePetJson } from "./pet-json.ts";
import { insertInto, SQLITE_DIALECT, sqliteDatabase } from "./statements.ts";

export interface SqliteStores extends Stores {
  readonly petJson: SqlitePetJson;
  readonly commitQueueLength: () => number;
  close(): Promise<void>;
}

/**
 * How long a statement waits for a lock. The time is short, because it blocks the event loop; BatchQueue retries
 * without blocking it.
 */
const BUSY_TIMEOUT_MS = 5;
/** How long adding usage waits for the lock. Usage is added every two seconds, so a failed attempt is repeated soon. */
const USAGE_WAIT_MS = 1_000;
/** How long a change by an operator waits for a busy server. */
const KEY_WAIT_MS = 5_000;

/** Opens the stores. One server and any number of commands can have the same file open at once. */
export function openSqlite(path: string, options: SqliteStoreOptions = {}): SqliteStores {
  const files = new OpenFiles(path);
  const shared = {
    migrations: SQLITE_MIGRATIONS,
    synchronous: "FULL",
    busyTimeoutMs: BUSY_TIMEOUT_MS,
    beforeCommit: files.check,
    keepsFiles: options.rescue !== undefined,
  } as const;
  const storeOptions = { ...shared, cacheKiB: 16 * 1024 };
  const keyOptions = { ...shared, cacheKiB: 1024, writeWaitMs: KEY_WAIT_MS };
  // Counts and what servers share do not wait for the disk, and so delay no request. A power failure may lose the last
  // seconds.
  const unsyncedOptions = {
    ...shared,
    synchronous: "NORMAL",
    cacheKiB: 2 * 1024,
    writeWaitMs: USAGE_WAIT_MS,
    integers: "number",
  } as const;
  // If one of them fails to open, those before it are closed.
  using opened = new DisposableStack();
  const store = openDatabaseFor(path, storeOptions, (connection) => {
    opened.defer(() => connection.close());
    checkColumns(connection);
    files.watch(connection, options.rescue);
    opened.defer(() => files.stop());
    return new SqliteStore(connection, options);
  });
  // Changes of keys have a connection of their own, because they wait for the write lock, and requests of clients must
  // not.
  const { closeKeys, ...stores } = openDatabaseFor(path, keyOptions, (connection) => {
    const database = auditedDatabase(sqliteDatabase(connection), options.onAudit);
    return {
      keys: new SqlKeyStore(database),
      operators: new SqlOperatorStore(database),
      audit: new SqlAuditStore(database),
      policies: new SqlPolicyStore(database),
      settings: new SqlSettingsStore(database),
      webhooks: new SqlWebhookStore(database),
      closeKeys: () => connection.close(),
    };
  });
  opened.defer(closeKeys);
  const { closeUnsynced, ...unsynced } = openDatabaseFor(path, unsyncedOptions, (connection) => {
    const database = sqliteDatabase(connection);
    return {
      usageHistory: new SqlUsageHistoryStore(database),
      serverReports: new SqlServerReportStore(database),
      questions: new SqlQuestionStore(database),
      closeUnsynced: () => connection.close(),
    };
  });
  opened.move();
  return {
    store,
    inventory: store.inventory,
    ...stores,
    ...unsynced,
    petJson: store.petJson,
    commitQueueLength: () => store.commitQueueLength,
    async close() {
      files.stop();
      closeUnsynced();
      closeKeys();
      await store.close();
    },
  };
}

/**
 * Checks the columns, so that a database that somebody has altered fails when it is opened and not at some later
 * request.
 */
function checkColumns(connection: Connection): void {
  for (const { name, columns } of TABLES) {
    connection.value(`SELECT ${Object.keys(columns).join(", ")} FROM ${name} LIMIT 0`);
  }
}

interface SqliteStoreOptions {
  readonly maxQueuedWrites?: number;
  /** How long a write is retried while another process has the database locked. */
  readonly maxBusyMs?: number;
  /** Called after each transaction of writes. */
  readonly onCommit?: (writes: number, ms: number) => void;
  readonly onStateChange?: (change: StateChange) => void;
  /** The time from which the age of idempotency records is counted, if it is earlier than the time of a write. */
  readonly retentionNow?: () => number;
  /** Called with each audit entry after its transaction. */
  readonly onAudit?: OnAudit | undefined;
  /** What a server does when the files of the database are deleted or replaced. */
  readonly rescue?: RescueOptions;
}

/** Bounds how long one transaction blocks the event loop: this many inserts take a few milliseconds. */
const MAX_WRITES_PER_TRANSACTION = 1_000;

const INSERT_PET = insertInto(PET_ROWS.table, Object.keys(PET_ROWS.given));

interface Write<Code extends string> {
  readonly operation: IdempotentOperation;
  readonly at: number;
  readonly request: IdempotentRequest | undefined;
  readonly work: () => WriteResult | Rejection<Code>;
}

/**
 * The pets and orders of clients. Reads return at once; writes share transactions. Work that returns a rejection has
 * written nothing.
 */
export class SqliteStore extends SqlReadStore implements Store {
  readonly petJson: SqlitePetJson;
  readonly inventory: InventoryStore;
  readonly #records: IdempotencyRecords;
  readonly #inProgress = new InProgressRequests();
  readonly #writes: BatchQueue<() => unknown, unknown>;
  readonly #outage: FailureReporter;
  #lastWriteAt = 0;

  constructor(
    private readonly connection: Connection,
    {
      maxQueuedWrites = 10_000,
      maxBusyMs = 2_000,
      onCommit,
      onStateChange = () => {},
      onAudit,
      retentionNow,
    }: SqliteStoreOptions = {},
  ) {
    super(sqliteDatabase(connection));
    this.#outage = new FailureReporter(
      (cause) => onStateChange({ state: "down", cause }),
      (afterMs) => onStateChange({ state: "up", afterMs }),
    );
    this.petJson = new SqlitePetJson(connection);
    this.#records = new IdempotencyRecords(connection, retentionNow);
    this.inventory = new SqlInventoryStore({
      ...this.database,
      write: (_queue, statements) =>
        reportAudit(statements, (audited) => this.#submit(() => connection.runAll(audited)), onAudit),
      petsChanged: () => this.petJson.recordChange(),
    });
    this.#writes = new BatchQueue({
      run: (writes) => this.#commit(writes),
      maxBatch: MAX_WRITES_PER_TRANSACTION,
      maxQueued: maxQueuedWrites,
      onBatch: onCommit,
      retry: { isBusy, maxMs: maxBusyMs },
    });
  }

  get commitQueueLength(): number {
    return this.#writes.queueLength;
  }

  /**
   * Creates a pet. The change is counted before its commit: nothing is read in between, and counting a failed one does
   * no harm.
   */
  createPet(pet: NewPet, at: number, request?: IdempotentRequest) {
    const values = PET_ROWS.valuesOf(pet);
    const work = () => {
      this.petJson.revisions.changesAndAdditions++;
      const id = BigInt(this.connection.run(INSERT_PET, ...values).lastInsertRowid);
      return { id, body: encodePet({ ...pet, id }), replayed: false };
    };
    return this.#write<never>({ operation: "createPet", at, request, work });
  }

  placeOrder(placement: OrderPlacement, at: number, request?: IdempotentRequest) {
    const work = () => {
      const result = this.connection.runAll(() => placeOrder(placement, at, SQLITE_DIALECT));
      if (!(result instanceof Rejection)) this.petJson.petChanged(placement.petId);
      return result;
    };
    return this.#write<"pet_not_found" | "pet_not_available">({ operation: "placeOrder", at, request, work });
  }

  updateOrder(update: OwnOrderUpdate, at: number) {
    return this.#submit(() => {
      const result = this.connection.runAll(() => updateOrder(update, at, SQLITE_DIALECT));
      if (!(result instanceof Rejection)) this.petJson.petChanged(result.petId);
      return result;
    });
  }

  async close(): Promise<void> {
    await this.#writes.close();
    this.connection.close();
  }

  #write<Code extends string>({ operation, at, request, work }: Write<Code>) {
    this.#lastWriteAt = at;
    if (request === undefined) return this.#submit(work);
    const write = { operation, at, request };
    return this.#inProgress.run(operation, request, () =>
      this.#submit(() => {
        const earlier = this.#records.find(write);
        if (earlier !== undefined) return earlier;
        const result = work();
        if (!(result instanceof Rejection)) this.#records.save(write, result);
        return result;
      }),
    );
  }

  /** The promise resolves with what `work` returns; the types of BatchQueue cannot express that. */
  #submit<T>(work: () => T): Promise<T> {
    return this.#writes.submit(work) as Promise<T>;
  }

  #commit(writes: readonly (() => unknown)[]): unknown[] {
    try {
      const results = this.connection.transaction(() => {
        const results = writes.map((write) => write());
        this.#records.purge(this.#lastWriteAt, writes.length);
        return results;
      });
      this.#outage.succeeded();
      return results;
    } catch (error) {
      // If another process holds the lock, that is no outage: the commit is repeated.
      if (error instanceof Unavailable && !isBusy(error)) this.#outage.failed(error);
      throw error;
    }
  }
}
