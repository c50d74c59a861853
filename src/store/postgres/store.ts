import type { SQL } from "bun";
import type {
  IdempotentRequest,
  OrderClosing,
  OrderPlacement,
  Page,
  PageQuery,
  PetQuery,
  Store,
  Stores,
} from "../../domain/ports.ts";
import type { NewPet, Order, OrderStatus, Pet } from "../../domain/resources.ts";
import { SqlAuditStore } from "../audit.ts";
import { GroupCommit } from "../group-commit.ts";
import { InProgressRequests } from "../idempotency.ts";
import { SqlOperatorStore } from "../operators.ts";
import { SqlSettingsStore } from "../settings.ts";
import { postgresKeyStore } from "./api-keys.ts";
import { addressOf, connect, explained, messageOf, QueryTimeout } from "./connection.ts";
import { migrate, type MigrateOptions } from "./migrations.ts";
import { Orders, postgresCorrectionStore } from "./orders.ts";
import { PostgresPetJson } from "./pet-json.ts";
import { type CreateResult, type PetCreation, Pets } from "./pets.ts";
import { Pools, type PoolsOptions } from "./pool.ts";
import { Primary } from "./primary.ts";
import { postgresDatabase } from "./statements.ts";
import { PostgresUsageHistoryStore } from "./usage-history.ts";

export interface PostgresStores extends Stores {
  readonly petJson: PostgresPetJson;
  readonly commitQueueLength: () => number;
  /** Queries that run or wait for a connection. */
  readonly queueLength: () => number;
  close(): Promise<void>;
}

interface PostgresOptions extends PoolsOptions {
  /** Is called after each transaction that creates pets. */
  readonly onCommit?: (writes: number, ms: number) => void;
}

/** The PostgreSQL project no longer maintains earlier versions. */
export const OLDEST_VERSION = 13;
/** Instances that start together wait for the one that migrates. */
const OPEN_TIMEOUT_MS = 60_000;
const OPEN_OPTIONS = {
  maxConnections: 1,
  connectMs: 5_000,
  statementMs: OPEN_TIMEOUT_MS,
  lockMs: OPEN_TIMEOUT_MS,
  idleInTransactionMs: 10_000,
};

/** Connects once, and migrates the tables. */
export async function migratePostgres(url: string, schema: string | undefined): Promise<void> {
  const timeout = new QueryTimeout(OPEN_TIMEOUT_MS);
  let sql: SQL | undefined;
  try {
    // Throws if the file of sslrootcert cannot be read.
    sql = connect(url, { ...OPEN_OPTIONS, schema });
    await timeout.race(prepare(sql, { schema, timeout }));
  } catch (error) {
    throw cannotOpen(url, error);
  } finally {
    timeout.clear();
    await sql?.close({ timeout: 0 });
  }
}

function cannotOpen(url: string, error: unknown): Error {
  const reason = messageOf(explained(error));
  return new Error(`cannot open the database ${addressOf(url)}: ${reason}`, { cause: error });
}

/** Migrates the tables, and opens the stores, which share the connections. */
export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<PostgresStores> {
  const primary = await Primary.of(url).catch((error: unknown) => {
    throw cannotOpen(url, error);
  });
  await migratePostgres(primary.url, options.schema);
  const pools = new Pools(primary, options);
  const store = new PostgresStore(pools, options.onCommit);
  const petJson = new PostgresPetJson(pools);
  const database = postgresDatabase(pools);
  return {
    store,
    corrections: postgresCorrectionStore(pools),
    operators: new SqlOperatorStore(database),
    keys: postgresKeyStore(pools),
    audit: new SqlAuditStore(database),
    settings: new SqlSettingsStore(database),
    usageHistory: new PostgresUsageHistoryStore(pools),
    petJson,
    commitQueueLength: () => store.commitQueueLength,
    queueLength: () => pools.queueLength,
    async close() {
      await petJson.close();
      await store.close();
    },
  };
}

async function prepare(sql: SQL, options: MigrateOptions): Promise<void> {
  const [server] = await sql<[{ version: number; encoding: string }]>`
    SELECT current_setting('server_version_num')::int / 10000 AS version,
      current_setting('server_encoding') AS encoding`;
  if (server.version < OLDEST_VERSION) {
    throw new Error(`PostgreSQL ${server.version} is too old; ${OLDEST_VERSION} or newer is required`);
  }
  if (server.encoding !== "UTF8") {
    throw new Error(`its encoding is ${server.encoding}; create the database with the encoding UTF8`);
  }
  await migrate(sql, options);
}

/** Each write with an Idempotency-Key takes one of the server's locks, of which there are 6,400 by default. */
const MAX_PETS_PER_TRANSACTION = 128;

/** Creations of pets share transactions; each order has one of its own. */
class PostgresStore implements Store {
  readonly #pools: Pools;
  readonly #pets: Pets;
  readonly #orders: Orders;
  readonly #creations: GroupCommit<PetCreation, CreateResult>;
  /** Rejects a repeated request on this instance before it takes a connection; on another one, PostgreSQL does. */
  readonly #inProgress = new InProgressRequests();

  constructor(pools: Pools, onCommit?: PostgresOptions["onCommit"]) {
    this.#pools = pools;
    this.#pets = new Pets(pools);
    this.#orders = new Orders(pools);
    this.#creations = new GroupCommit({
      commit: (creations) => this.#pets.create(creations),
      maxBatch: MAX_PETS_PER_TRANSACTION,
      maxQueued: pools.maxQueued,
      maxQueueMs: pools.timeoutMs,
      onCommit,
    });
  }

  get commitQueueLength(): number {
    return this.#creations.queueLength;
  }

  listPets(query: PetQuery): Promise<Page<Pet>> {
    return this.#pets.list(query);
  }

  getPet(id: bigint): Promise<Pet | undefined> {
    return this.#pets.get(id);
  }

  createPet(pet: NewPet, at: number, request?: IdempotentRequest) {
    const create = () => this.#creations.submit({ pet, at, request });
    return request === undefined ? create() : this.#inProgress.run("createPet", request, create);
  }

  listOrders(keyId: number, query: PageQuery<OrderStatus>): Promise<Page<Order>> {
    return this.#orders.list(keyId, query);
  }

  getOrder(keyId: number, id: bigint): Promise<Order | undefined> {
    return this.#orders.get(keyId, id);
  }

  placeOrder(placement: OrderPlacement, at: number, request?: IdempotentRequest) {
    const place = () => this.#orders.place(placement, at, request);
    return request === undefined ? place() : this.#inProgress.run("placeOrder", request, place);
  }

  updateOrder(closing: OrderClosing, at: number) {
    return this.#orders.close(closing, at);
  }

  async close(): Promise<void> {
    await this.#creations.close();
    await this.#pools.close();
  }
}
