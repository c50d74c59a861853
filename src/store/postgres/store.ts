import type { SQL } from "bun";
import { Rejection } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import type { Credential } from "../../domain/api-keys.ts";
import type { DatabaseStores } from "../../domain/ports/stores.ts";
import type { KeyCounter, KeyCounterOptions } from "../../domain/ports/rate-limiter.ts";
import type {
  IdempotencyRejection,
  IdempotentRequest,
  OwnOrderUpdate,
  OrderPlacement,
  ClientStore,
  WriteResult,
} from "../../domain/ports/pets-and-orders.ts";
import type { NewPet } from "../../domain/pets-and-orders.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { findCredentials, SELECT_CREDENTIALS } from "../api-keys.ts";
import { auditedDatabase, type OnAudit, reportAudit } from "../audit.ts";
import { BatchQueue } from "../sql/batch-queue.ts";
import { InProgressRequests } from "../idempotency.ts";
import type { TableUse } from "../sql/migrations.ts";
import { operatorStores } from "../operator-stores.ts";
import { placeOrder, SqlPetsAndOrdersStore, SqlClientReads, updateOrder } from "../pets-and-orders.ts";
import { SqlQuestionStore } from "../questions.ts";
import { SqlServerReportStore } from "../server-reports.ts";
import type { RetentionNow } from "../retention-clock.ts";
import { SqlValueStore } from "../stored-values.ts";
import { SqlWebhookStore } from "../webhooks.ts";
import { addressOf, connect, withExplanation, nextIdLock } from "./connection.ts";
import { PostgresIdempotencyRecords } from "./idempotency.ts";
import { PostgresKeyCounter } from "./key-counter.ts";
import { applyPostgresMigrations, OPEN_TIMEOUT_MS } from "./migrate.ts";
import { PET_JSON, PostgresPetJson } from "./pet-json.ts";
import { Pools, type PoolsOptions } from "./pool.ts";
import { Primary, type PrimaryOptions } from "./primary.ts";
import { PET_ROWS } from "../sql/rows.ts";
import { requireRow, type SqlDatabase } from "../sql/steps.ts";
import {
  parameterColumns,
  POSTGRES_DIALECT,
  postgresDatabase,
  operatorReadsOn,
  runAll,
  unloggedDatabase,
} from "./dialect.ts";

export interface PostgresStores extends DatabaseStores {
  readonly petJson: PostgresPetJson;
  readonly commitQueueLength: () => number;
  /** The number of queries that run or wait for a connection. */
  readonly queueLength: () => number;
  /** The counter is closed before the stores. */
  readonly openKeyCounter: (options: KeyCounterOptions) => KeyCounter;
  close(): Promise<void>;
}

interface PostgresOptions extends PoolsOptions, PrimaryOptions {
  /** Which tables are opened; by default, tables are made where there are none. */
  readonly use?: TableUse | undefined;
  /** The time by which old data is deleted; by default, that at which the stores were opened. */
  readonly retentionNow?: RetentionNow;
  /** Called after each transaction that creates pets. */
  readonly onCommit?: (writes: number, ms: number) => void;
  /** Called with each audit entry after its transaction. */
  readonly onAudit?: OnAudit | undefined;
}

/** The oldest version that the store accepts. The PostgreSQL project no longer maintains earlier ones. */
export const OLDEST_VERSION = 13;
const OPEN_OPTIONS = {
  statementMs: OPEN_TIMEOUT_MS,
  lockMs: OPEN_TIMEOUT_MS,
  idleInTransactionMs: 10_000,
};

/** Connects once, makes or migrates the tables if `use` allows it, and returns the time of the database. */
export async function migratePostgres(
  url: string,
  schema: string | undefined,
  use: TableUse,
): Promise<number> {
  let sql: SQL | undefined;
  try {
    // This throws if the file of sslrootcert cannot be read.
    sql = connect(url, { ...OPEN_OPTIONS, schema });
    await withTimeout(OPEN_TIMEOUT_MS, checkServer(sql));
    await applyPostgresMigrations(sql, schema, use);
    const [row] = await sql.unsafe<{ now: bigint }[]>(`SELECT ${POSTGRES_DIALECT.now} AS now`);
    return Number(requireRow(row).now);
  } catch (error) {
    throw cannotOpen(url, error);
  } finally {
    await sql?.close({ timeout: 0 });
  }
}

function cannotOpen(url: string, error: unknown): Error {
  const reason = messageOf(withExplanation(error));
  return new Error(`cannot open the database ${addressOf(url)}: ${reason}`, { cause: error });
}

/** Makes or migrates the tables if `use` allows it, and opens the stores, which share the connections. */
export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<PostgresStores> {
  const cannotFind = (error: unknown) => {
    throw cannotOpen(url, error);
  };
  const primary = await Primary.of(url, options).catch(cannotFind);
  const openedAt = await migratePostgres(primary.url, options.schema, options.use ?? "create");
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
  const petsAndOrdersOn = (stored: SqlDatabase) =>
    new SqlPetsAndOrdersStore({
      ...stored,
      write: (row, statements) =>
        reportAudit(statements, (audited) => pools.rowTransaction(row, (tx) => runAll(tx, audited)), onAudit),
    });
  const readDatabase = { ...database, read: operatorReadsOn(pools) };
  return {
    ...operatorStores(database, petsAndOrdersOn(database), {
      findCredential: (hash) => lookups.submit(hash),
      retentionNow: options.retentionNow ?? (() => openedAt),
    }),
    clientStore: store,
    storedValues: new SqlValueStore(database),
    serverReports: new SqlServerReportStore(unloggedDatabase(pools)),
    questions: new SqlQuestionStore(unloggedDatabase(pools)),
    webhooks: new SqlWebhookStore(database),
    petJson,
    operatorReads: operatorStores(readDatabase, petsAndOrdersOn(readDatabase)),
    commitQueueLength: () => store.commitQueueLength,
    queueLength: () => pools.queueLength,
    openKeyCounter: (counterOptions) => new PostgresKeyCounter(pools, counterOptions),
    async close() {
      await petJson.close();
      await store.close();
    },
  };
}

async function checkServer(sql: SQL): Promise<void> {
  const [server] = await sql<[{ version: number; encoding: string }]>`
    SELECT current_setting('server_version_num')::int / 10000 AS version,
      current_setting('server_encoding') AS encoding`;
  if (server.version < OLDEST_VERSION) {
    throw new Error(`PostgreSQL ${server.version} is too old; ${OLDEST_VERSION} or newer is required`);
  }
  if (server.encoding !== "UTF8") {
    throw new Error(`its encoding is ${server.encoding}; create the database with the encoding UTF8`);
  }
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

/** Each write with an Idempotency-Key takes one of the server's locks, of which there are 6,400 by default. */
const MAX_PETS_PER_TRANSACTION = 128;

const COLUMNS = Object.keys(PET_ROWS.given).join(", ");

/**
 * Inserts pets, given as one array for each column. ORDER BY applies before the identifiers are assigned, so the first
 * pet gets the lowest.
 */
const INSERT_PETS = `
  WITH ${nextIdLock("pets")}
  INSERT INTO pets (${COLUMNS}) SELECT ${COLUMNS}
  FROM next_id_lock, ${parameterColumns(PET_ROWS.given)} AS given
  ORDER BY place
  RETURNING id, ${PET_JSON} AS body`;

interface PetCreation {
  readonly pet: NewPet;
  readonly request: IdempotentRequest | undefined;
}

type CreateResult = WriteResult | IdempotencyRejection;

async function insertPets(sql: SQL, creations: readonly PetCreation[]): Promise<WriteResult[]> {
  if (creations.length === 0) return [];
  const values = creations.map(({ pet }) => PET_ROWS.valuesOf(pet));
  const columns = Object.keys(PET_ROWS.given).map((_, i) => values.map((row) => row[i]));
  const rows = await sql.unsafe<{ id: bigint; body: string }[]>(INSERT_PETS, columns);
  return rows.map(({ id, body }) => ({ id, body, replayed: false }));
}

/** The pets and orders of clients. Creations of pets share transactions; each order has one of its own. */
class PostgresClientStore extends SqlClientReads implements ClientStore {
  readonly #petRecords: PostgresIdempotencyRecords;
  readonly #orderRecords: PostgresIdempotencyRecords;
  readonly #creations: BatchQueue<PetCreation, CreateResult>;
  /**
   * Rejects a repeated request on this instance before it takes a connection. PostgreSQL rejects one on another
   * instance.
   */
  readonly #inProgress = new InProgressRequests();

  constructor(
    private readonly pools: Pools,
    { onCommit, retentionNow }: PostgresOptions,
  ) {
    super(postgresDatabase(pools));
    this.#petRecords = new PostgresIdempotencyRecords("createPet", pools.writes, retentionNow);
    this.#orderRecords = new PostgresIdempotencyRecords("placeOrder", pools.writes, retentionNow);
    this.#creations = new BatchQueue({
      run: (creations) => this.#createPets(creations),
      maxBatch: MAX_PETS_PER_TRANSACTION,
      maxQueued: pools.maxQueued,
      maxQueueMs: pools.timeoutMs,
      onBatch: onCommit,
    });
  }

  get commitQueueLength(): number {
    return this.#creations.queueLength;
  }

  createPet(pet: NewPet, _at: number, request?: IdempotentRequest) {
    const create = () => this.#creations.submit({ pet, request });
    return request === undefined ? create() : this.#inProgress.run("createPet", request, create);
  }

  /** Creates pets in one transaction. */
  async #createPets(creations: readonly PetCreation[]): Promise<CreateResult[]> {
    if (creations.every(({ request }) => request === undefined)) {
      // A single statement is a transaction: it takes one round trip, and the server sends its end after the commit.
      return this.pools.creates.query((sql) => insertPets(sql, creations));
    }
    const results = await this.pools.creates.transaction(async (tx) => {
      const results: Map<PetCreation, CreateResult> = await this.#petRecords.lockAndFind(tx, creations);
      const missing = creations.filter((creation) => !results.has(creation));
      const created = (await insertPets(tx, missing)).map(
        (result, i) => [requireRow(missing[i]), result] as const,
      );
      await this.#petRecords.save(tx, created);
      for (const [creation, result] of created) results.set(creation, result);
      return results;
    });
    this.#petRecords.purge(creations);
    return creations.map((creation) => requireRow(results.get(creation)));
  }

  placeOrder(placement: OrderPlacement, at: number, request?: IdempotentRequest) {
    const place = () => this.#placeOrder(placement, at, request);
    return request === undefined ? place() : this.#inProgress.run("placeOrder", request, place);
  }

  async #placeOrder(placement: OrderPlacement, at: number, request: IdempotentRequest | undefined) {
    const write = { request };
    const result = await this.pools.rowTransaction(`pet ${placement.petId}`, async (tx) => {
      const earlier = (await this.#orderRecords.lockAndFind(tx, [write])).get(write);
      if (earlier !== undefined) return earlier;
      const result = await runAll(tx, () => placeOrder(placement, at, POSTGRES_DIALECT));
      if (!(result instanceof Rejection)) await this.#orderRecords.save(tx, [[write, result]]);
      return result;
    });
    if (request !== undefined) this.#orderRecords.purge([write]);
    return result;
  }

  updateOrder(update: OwnOrderUpdate, at: number) {
    return this.pools.rowTransaction(`order ${update.id}`, (tx) =>
      runAll(tx, () => updateOrder(update, at, POSTGRES_DIALECT)),
    );
  }

  async close(): Promise<void> {
    await this.#creations.close();
    await this.pools.close();
  }
}
