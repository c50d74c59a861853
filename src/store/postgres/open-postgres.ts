import type { Credential } from "../../domain/api-keys.ts";
import type { DatabaseStores } from "../../domain/ports/stores.ts";
import type { KeyLimiterOptions } from "../../domain/ports/rate-limiter.ts";
import { findCredentials, SELECT_CREDENTIALS } from "../api-keys.ts";
import { auditedDatabase, type OnAudit, reportAudit } from "../audit.ts";
import { BatchQueue } from "../sql/batch-queue.ts";
import type { TableUse } from "../sql/migrations.ts";
import { adminStores } from "../admin-stores.ts";
import { SqlOperatorPetStore } from "../pets-and-orders.ts";
import { SqlQuestionStore } from "../questions.ts";
import { SqlServerReportStore } from "../server-reports.ts";
import { SqlValueStore } from "../stored-values.ts";
import { SqlWebhookStore } from "../webhooks.ts";
import { PostgresKeyLimiter } from "./key-limiter.ts";
import { PostgresPetJson } from "./pet-json.ts";
import { Pools, type PoolsOptions } from "./pools.ts";
import { shareEnvironment } from "./environment-lock.ts";
import { Primary, type PrimaryOptions } from "./primary.ts";
import type { SqlDatabase } from "../sql/steps.ts";
import { postgresDatabase, operatorReadsOn, runAll, unloggedDatabase } from "./dialect.ts";
import { migratePostgres } from "./migrate.ts";
import { cannotOpen } from "./errors.ts";
import { PostgresClientStore, type PostgresClientStoreOptions } from "./client-store.ts";

export interface PostgresStores extends DatabaseStores {
  readonly petJson: PostgresPetJson;
  readonly commitQueueLength: () => number;
  /** The number of queries that run or wait for a connection. */
  readonly queueLength: () => number;
  /** The limiter is closed before the stores. */
  readonly openKeyLimiter: (options: KeyLimiterOptions) => PostgresKeyLimiter;
  close(): Promise<void>;
}

interface PostgresOptions extends PoolsOptions, PrimaryOptions, PostgresClientStoreOptions {
  /** Which tables are opened; by default, tables are made where there are none. */
  readonly use?: TableUse | undefined;
  /** Called with each audit entry after its transaction. */
  readonly onAudit?: OnAudit | undefined;
}

/** Makes or migrates the tables if `use` allows it, and opens the stores, which share the connections. */
export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<PostgresStores> {
  const cannotFind = (error: unknown) => {
    throw cannotOpen(url, error);
  };
  const primary = await Primary.of(url, options).catch(cannotFind);
  await using opened = new AsyncDisposableStack();
  opened.use(await shareEnvironment(primary, options.schema ?? "").catch(cannotFind));
  const openedAt = await migratePostgres(primary.url, {
    schema: options.schema,
    use: options.use ?? "create",
  });
  await primary.mark().catch(cannotFind);
  const pools = new Pools(primary, options);
  const store = new PostgresClientStore(pools, options);
  const petJson = new PostgresPetJson(pools);
  const lookups = new BatchQueue({
    run: (hashes: readonly string[]) => findTogether(pools, hashes),
    maxBatch: MAX_LOOKUPS_PER_QUERY,
    maxQueued: pools.maxQueued,
  });
  const { onAudit } = options;
  const database = auditedDatabase(postgresDatabase(pools), onAudit);
  const operatorPetStoreOn = (stored: SqlDatabase) =>
    new SqlOperatorPetStore({
      ...stored,
      write: (row, statements) =>
        reportAudit(
          statements,
          (audited) => pools.rowTransactions.run(row, (tx) => runAll(tx, audited)),
          onAudit,
        ),
    });
  const lock = opened.move();
  const readDatabase = { ...database, read: operatorReadsOn(pools) };
  return {
    ...adminStores(database, operatorPetStoreOn(database), {
      findCredential: (hash) => lookups.submit(hash),
      retentionNow: options.retentionNow ?? (() => openedAt),
    }),
    clientStore: store,
    storedValues: new SqlValueStore(database),
    serverReports: new SqlServerReportStore(unloggedDatabase(pools)),
    questions: new SqlQuestionStore(unloggedDatabase(pools)),
    webhooks: new SqlWebhookStore(database),
    petJson,
    operatorReads: adminStores(readDatabase, operatorPetStoreOn(readDatabase)),
    commitQueueLength: () => store.commitQueueLength,
    queueLength: () => pools.queueLength,
    openKeyLimiter: (limiterOptions) => new PostgresKeyLimiter(pools, limiterOptions, onAudit),
    async close() {
      await petJson.close();
      await store.close();
      await lock.disposeAsync();
    },
  };
}

/** The parameter is a list of hashes, separated by commas. */
const FIND_CREDENTIALS = `${SELECT_CREDENTIALS} hash = ANY (string_to_array(?, ','))`;
const MAX_LOOKUPS_PER_QUERY = 64;

/**
 * Runs lookups that arrive together as one query. Anybody can cause lookups, and a query costs PostgreSQL and this
 * process nearly the same for one secret as for many.
 */
async function findTogether(
  { lookups }: Pools,
  hashes: readonly string[],
): Promise<(Credential | undefined)[]> {
  const found = await lookups.query((sql) =>
    runAll(sql, () => findCredentials(FIND_CREDENTIALS, hashes.join(","))),
  );
  return hashes.map((hash) => found.get(hash));
}
