import { Rejection } from "../../api/errors.ts";
import { encodePet, type NewPet } from "../../domain/pets-and-orders.ts";
import type {
  OperatorPetStore,
  IdempotentRequest,
  OwnOrderUpdate,
  OrderPlacement,
  ClientStore,
  WriteResult,
} from "../../domain/ports/pets-and-orders.ts";
import { type OnAudit, reportAudit } from "../audit.ts";
import { InProgressRequests } from "../idempotency.ts";
import type { IdempotentOperation } from "../../domain/operation-ids.ts";
import { placeOrder, SqlOperatorPetStore, SqlClientStore, updateOrder } from "../pets-and-orders.ts";
import { PET_ROWS } from "../sql/rows.ts";
import type { SqlDatabase } from "../sql/steps.ts";
import { type CommitDisk, CommitQueue, type CommitQueueOptions, type WriteOptions } from "./commit-queue.ts";
import type { Connection } from "./connection.ts";
import { SqliteIdempotencyRecords } from "./idempotency.ts";
import { SqlitePetJson } from "./pet-json.ts";
import { RecentPets } from "./recent-pets.ts";
import { insertInto, SQLITE_DIALECT } from "./dialect.ts";

export interface SqliteClientStoreOptions extends CommitQueueOptions {
  /** How a server's commits reach the disk. A command has one connection, whose commits wait for it. */
  readonly disk?: ServerDisk | undefined;
  /** The time from which the age of idempotency records is counted, if it is earlier than the time of a write. */
  readonly retentionNow?: () => number;
  /** Called with each audit entry after its transaction. */
  readonly onAudit?: OnAudit | undefined;
}

interface ServerDisk extends CommitDisk {
  readonly reads: Connection;
}

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
  /** All writes of this process, those of other stores, too. */
  readonly commits: CommitQueue;
  readonly #reads: Connection;
  readonly #records: SqliteIdempotencyRecords;
  readonly #inProgress = new InProgressRequests();
  readonly #recentPets: RecentPets;
  /** The time of the last write of a client. Before the first one, no record is known to have expired. */
  #lastWriteAt: number | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly options: SqliteClientStoreOptions = {},
  ) {
    const { disk, retentionNow } = options;
    const reads = disk?.reads ?? connection;
    const recentPets = new RecentPets(connection);
    const records = new SqliteIdempotencyRecords(connection, retentionNow);
    const atEnd = (writes: number) => {
      if (this.#lastWriteAt !== undefined) records.purge(this.#lastWriteAt, writes);
      recentPets.indexIfMany();
    };
    const commits = new CommitQueue({ connection, disk, atEnd }, options);
    super(databaseOn(reads, connection, commits));
    this.#reads = reads;
    this.#recentPets = recentPets;
    this.#records = records;
    this.commits = commits;
    const dataVersion = () => connection.dataVersion();
    const whenUnpinned = (work: () => void) => commits.whenUnpinned(work);
    this.petJson = new SqlitePetJson(reads, { writes: { dataVersion, whenUnpinned } });
    this.operatorPetStore = this.operatorPetStoreOn(this.database);
  }

  /** Returns the database for other stores. */
  databaseFor(options?: WriteOptions): SqlDatabase {
    return databaseOn(this.#reads, this.connection, this.commits, options);
  }

  /** Returns a store that reads from another database than this one, and writes to this one. */
  operatorPetStoreOn(database: SqlDatabase): OperatorPetStore {
    return new SqlOperatorPetStore({
      ...database,
      write: (_row, statements) =>
        reportAudit(
          statements,
          (audited) => this.commits.submit(() => this.connection.runAll(audited)),
          this.options.onAudit,
        ),
      petsChanged: () => this.commits.whenShown(() => this.petJson.everythingChanged()),
    });
  }

  /**
   * Creates a pet. It is encoded here, because SQLite returns its identifier only; SQL encodes a pet that is read. The
   * first of `petCases` (test/conformance/store-pets.ts) compares the two.
   */
  createPet(pet: NewPet, at: number, request?: IdempotentRequest) {
    const values = PET_ROWS.valuesOf(pet);
    const work = () => {
      this.commits.whenShown(() => this.petJson.petAdded());
      const id = BigInt(this.connection.run(INSERT_PET, ...values, 1).lastInsertRowid);
      this.#recentPets.added();
      return { id, body: encodePet({ ...pet, id }), replayed: false };
    };
    return this.#write<never>({ operation: "createPet", at, request, work });
  }

  placeOrder(placement: OrderPlacement, at: number, request?: IdempotentRequest) {
    const work = () => {
      const result = this.connection.runAll(() => placeOrder(placement, at, SQLITE_DIALECT));
      if (!(result instanceof Rejection)) this.#petChanges(placement.petId);
      return result;
    };
    return this.#write<"pet_not_found" | "pet_not_available">({ operation: "placeOrder", at, request, work });
  }

  updateOrder(update: OwnOrderUpdate, at: number) {
    return this.commits.submit(() => {
      const result = this.connection.runAll(() => updateOrder(update, at, SQLITE_DIALECT));
      if (!(result instanceof Rejection)) this.#petChanges(result.petId);
      return result;
    });
  }

  #petChanges(id: bigint): void {
    this.commits.whenShown(() => this.petJson.petChanged(id));
  }

  #write<Code extends string>({ operation, at, request, work }: Write<Code>) {
    this.#lastWriteAt = at;
    if (request === undefined) return this.commits.submit(work);
    const write = { operation, at, request };
    return this.#inProgress.run(operation, request, () =>
      this.commits.submit(() => {
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
    this.commits.submit(() => this.#recentPets.index(), { waitsForDisk: false }).catch(() => {});
  }

  async close(): Promise<void> {
    await this.commits.close();
    if (this.commits.hasFailed) return;
    if (this.#reads !== this.connection) this.#reads.close();
    this.connection.close();
  }
}

function databaseOn(
  reads: Connection,
  writes: Connection,
  commits: CommitQueue,
  options?: WriteOptions,
): SqlDatabase {
  return {
    dialect: SQLITE_DIALECT,
    read: (statements) => reads.runAll(statements),
    write: (statements) => commits.submit(() => writes.runAll(statements), options),
  };
}
