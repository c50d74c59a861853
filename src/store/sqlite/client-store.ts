import { Rejection, Unavailable } from "../../api/errors.ts";
import { FailureReporter } from "../../runtime/failure-reporter.ts";
import { encodePet, type NewPet } from "../../domain/pets-and-orders.ts";
import type { StateChange } from "../../domain/ports/stores.ts";
import type {
  OperatorPetStore,
  IdempotentRequest,
  OwnOrderUpdate,
  OrderPlacement,
  ClientStore,
  WriteResult,
} from "../../domain/ports/pets-and-orders.ts";
import { type OnAudit, reportAudit } from "../audit.ts";
import { BatchQueue } from "../sql/batch-queue.ts";
import { InProgressRequests } from "../idempotency.ts";
import type { IdempotentOperation } from "../../domain/operation-ids.ts";
import { placeOrder, SqlOperatorPetStore, SqlClientStore, updateOrder } from "../pets-and-orders.ts";
import { PET_ROWS } from "../sql/rows.ts";
import type { SqlDatabase } from "../sql/steps.ts";
import type { Connection } from "./connection.ts";
import { isBusy } from "./errors.ts";
import { SqliteIdempotencyRecords } from "./idempotency.ts";
import { SqlitePetJson } from "./pet-json.ts";
import { RecentPets } from "./recent-pets.ts";
import { insertInto, SQLITE_DIALECT, sqliteDatabase } from "./dialect.ts";
import { PAUSE_MS, TRANSACTION_WAIT_MS } from "./waits.ts";

export interface SqliteClientStoreOptions {
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
}

/** Bounds how long one transaction blocks the event loop: this many inserts take a few milliseconds. */
const MAX_WRITES_PER_TRANSACTION = 1_000;

const INSERT_PET = insertInto(PET_ROWS.table, [...Object.keys(PET_ROWS.writtenColumns), "is_recent"]);

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
export class SqliteClientStore extends SqlClientStore implements ClientStore {
  readonly petJson: SqlitePetJson;
  readonly operatorPetStore: OperatorPetStore;
  readonly #records: SqliteIdempotencyRecords;
  readonly #inProgress = new InProgressRequests();
  readonly #writes: BatchQueue<() => unknown, unknown>;
  readonly #outage: FailureReporter;
  readonly #recentPets: RecentPets;
  #lastWriteAt = 0;

  constructor(
    private readonly connection: Connection,
    private readonly options: SqliteClientStoreOptions = {},
  ) {
    super(sqliteDatabase(connection));
    const {
      maxQueuedWrites = 10_000,
      maxBusyMs = TRANSACTION_WAIT_MS.clients,
      onCommit,
      retentionNow,
    } = options;
    const { onStateChange = () => {} } = options;
    this.#outage = new FailureReporter(
      (cause) => onStateChange({ state: "down", cause }),
      (afterMs) => onStateChange({ state: "up", afterMs }),
    );
    this.petJson = new SqlitePetJson(connection);
    this.#recentPets = new RecentPets(connection);
    this.#records = new SqliteIdempotencyRecords(connection, retentionNow);
    this.operatorPetStore = this.operatorPetStoreOn(this.database);
    this.#writes = new BatchQueue({
      run: (writes) => this.#commit(writes),
      maxBatch: MAX_WRITES_PER_TRANSACTION,
      maxQueued: maxQueuedWrites,
      onBatch: onCommit,
      retry: { isBusy, maxMs: maxBusyMs, pauseMs: PAUSE_MS.groupCommit },
    });
  }

  get commitQueueLength(): number {
    return this.#writes.queueLength;
  }

  /** Returns a store that reads from another database than this one, and writes to this one. */
  operatorPetStoreOn(database: SqlDatabase): OperatorPetStore {
    return new SqlOperatorPetStore({
      ...database,
      write: (_row, statements) =>
        reportAudit(
          statements,
          (audited) => this.#submit(() => this.connection.runAll(audited)),
          this.options.onAudit,
        ),
      petsChanged: () => this.petJson.recordChange(),
    });
  }

  /**
   * Creates a pet. The change is counted before its commit: nothing is read in between, and counting a failed one does
   * no harm.
   *
   * A created pet is encoded here, because SQLite returns its identifier only; SQL encodes a pet that is read. The
   * first of `petCases` (test/conformance/store-pets.ts) compares the two.
   */
  createPet(pet: NewPet, at: number, request?: IdempotentRequest) {
    const values = PET_ROWS.valuesOf(pet);
    const work = () => {
      this.petJson.petAdded();
      const id = BigInt(this.connection.run(INSERT_PET, ...values, 1).lastInsertRowid);
      this.#recentPets.added();
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

  /**
   * Looks for pets that another process or an earlier server has left among the recent ones, since a page reads them,
   * too. While the database cannot be read, requests report that, and the next look tries again.
   */
  indexPetsOfOtherProcesses(): void {
    try {
      if (!this.#recentPets.areManyStored()) return;
    } catch {
      return;
    }
    this.#submit(() => this.#recentPets.index()).catch(() => {});
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
        this.#recentPets.indexIfMany();
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
