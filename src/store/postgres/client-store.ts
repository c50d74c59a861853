import type { SQL } from "bun";
import { Rejection } from "../../api/errors.ts";
import type {
  IdempotencyRejection,
  IdempotentRequest,
  OwnOrderUpdate,
  OrderPlacement,
  ClientStore,
  WriteResult,
} from "../../domain/ports/pets-and-orders.ts";
import type { NewPet } from "../../domain/pets-and-orders.ts";
import { BatchQueue } from "../sql/batch-queue.ts";
import { InProgressRequests } from "../idempotency.ts";
import { placeOrder, SqlClientStore, updateOrder } from "../pets-and-orders.ts";
import type { RetentionNow } from "../retention-clock.ts";
import { nextIdLock } from "./locks.ts";
import { PostgresIdempotencyRecords } from "./idempotency.ts";
import { PET_JSON } from "./pet-json.ts";
import type { Pools } from "./pools.ts";
import { PET_ROWS } from "../sql/rows.ts";
import { requireRow } from "../sql/steps.ts";
import { parameterColumns, POSTGRES_DIALECT, postgresDatabase, runAll } from "./dialect.ts";

export interface PostgresClientStoreOptions {
  /** The time by which old data is deleted; by default, that at which the stores were opened. */
  readonly retentionNow?: RetentionNow;
  /** Called after each transaction that creates pets. */
  readonly onCommit?: (writes: number, ms: number) => void;
}

/** Each write with an Idempotency-Key takes one of PostgreSQL's locks, of which there are 6,400 by default. */
const MAX_PETS_PER_TRANSACTION = 128;

const COLUMNS = Object.keys(PET_ROWS.writtenColumns).join(", ");

/**
 * Inserts pets, given as one array for each column. ORDER BY applies before the identifiers are assigned, so the first
 * pet gets the lowest.
 */
const INSERT_PETS = `
  WITH ${nextIdLock("pets")}
  INSERT INTO pets (${COLUMNS}) SELECT ${COLUMNS}
  FROM next_id_lock, ${parameterColumns(PET_ROWS.writtenColumns)} AS given
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
  const columns = Object.keys(PET_ROWS.writtenColumns).map((_, i) => values.map((row) => row[i]));
  const rows = await sql.unsafe<{ id: bigint; body: string }[]>(INSERT_PETS, columns);
  return rows.map(({ id, body }) => ({ id, body, replayed: false }));
}

/** The pets and orders of clients. Creations of pets share transactions; each order has one of its own. */
export class PostgresClientStore extends SqlClientStore implements ClientStore {
  readonly #petRecords: PostgresIdempotencyRecords;
  readonly #orderRecords: PostgresIdempotencyRecords;
  readonly #creations: BatchQueue<PetCreation, CreateResult>;
  /** Rejects repeated requests on this server before they take a connection. PostgreSQL rejects those on others. */
  readonly #inProgress = new InProgressRequests();

  constructor(
    private readonly pools: Pools,
    { onCommit, retentionNow }: PostgresClientStoreOptions,
  ) {
    super(postgresDatabase(pools));
    this.#petRecords = new PostgresIdempotencyRecords("createPet", pools.writes, retentionNow);
    this.#orderRecords = new PostgresIdempotencyRecords("placeOrder", pools.writes, retentionNow);
    this.#creations = new BatchQueue({
      run: (creations) => this.#createPets(creations),
      maxBatch: MAX_PETS_PER_TRANSACTION,
      maxQueued: pools.maxQueued,
      maxQueueMs: pools.timeoutMs,
      onBatch: (creations, ms) => onCommit?.(creations.length, ms),
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
      // A single statement is a transaction: it takes one round trip, and PostgreSQL sends its end after the commit.
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
    const result = await this.pools.rowTransactions.run(`pet ${placement.petId}`, async (tx) => {
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
    return this.pools.rowTransactions.run(`order ${update.id}`, (tx) =>
      runAll(tx, () => updateOrder(update, at, POSTGRES_DIALECT)),
    );
  }

  async close(): Promise<void> {
    await this.#creations.close();
    await this.pools.close();
  }
}
