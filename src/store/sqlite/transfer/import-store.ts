import type { Statement } from "bun:sqlite";
import type { OrderStatus, PetStatus } from "../../../domain/resources.ts";
import type { NewAuditEntry } from "../../../domain/audit.ts";
import {
  type BatchResult,
  ConcurrentImport,
  type ImportBatch,
  type ImportedOrder,
  type ImportedPet,
  type ImportProgress,
  type ImportRecord,
  type ImportStore,
} from "../../../domain/data-transfer.ts";
import {
  IMPORT_COLUMNS,
  importOf,
  type ImportRow,
  resolveOrders,
  resolvePets,
  type StoredPet,
} from "../../import-rows.ts";
import { AuditEntries } from "../audit.ts";
import type { Connection } from "../connection.ts";
import { openDatabaseFor } from "../database.ts";
import { MIGRATIONS } from "../migrations.ts";
import { translateErrors } from "../errors.ts";

/** An import waits this long for a server that writes. */
const WRITE_WAIT_MS = 60_000;
/** While others write, each batch leaves the lock free for so long; a batch holds it for two or three milliseconds. */
const PAUSE_MS = 2;
/** A server that gets requests writes every two seconds at least. */
const OTHERS_WRITE_MS = 5_000;
/** When the log is copied to the database, in pages of 4 KiB. Each copy waits for the disk. */
const CHECKPOINT_PAGES = 8_000;
/** A server copies the log at 1,000 pages, so while others write, the import does it before. */
const CHECKPOINT_PAGES_BESIDE_OTHERS = 400;

/**
 * `synchronous` is NORMAL: after a power failure the last batches may be missing, together with their progress, so that
 * the import continues before them. The last transaction waits for the disk.
 */
export function openImportStore(path: string): ImportStore {
  const options = {
    migrations: MIGRATIONS,
    synchronous: "NORMAL",
    cacheKiB: 16 * 1024,
    busyTimeoutMs: 0,
    writeWaitMs: WRITE_WAIT_MS,
  } as const;
  return openDatabaseFor(path, options, (connection) => new SqliteImportStore(connection));
}

type PetValues = [name: string, categoryId: bigint, status: PetStatus | null];
type OrderValues = [petId: bigint, status: OrderStatus, createdAt: number, keyId: number | null];

/** Undoes a trial. */
class Undo extends Error {
  constructor(readonly result: BatchResult) {
    super("undo");
  }
}

class SqliteImportStore implements ImportStore {
  readonly rowsPerBatch = 500;
  readonly #select: Statement<ImportRow, [string]>;
  readonly #selectUnfinished: Statement<ImportRow, [string]>;
  readonly #begin: Statement<unknown, [string, string, string, number]>;
  readonly #setProgress: Statement<unknown, [...number[], string, number]>;
  readonly #finish: Statement<unknown, [number, string]>;
  readonly #incrementPetRevision: Statement<unknown, []>;
  readonly #insertPet: Statement<unknown, PetValues>;
  readonly #insertPetWithId: Statement<unknown, [bigint, ...PetValues]>;
  readonly #updatePet: Statement<unknown, [...PetValues, bigint]>;
  readonly #selectPets: Statement<StoredPet, [string]>;
  readonly #selectKeys: Statement<{ id: bigint }, [string]>;
  readonly #selectOrders: Statement<{ id: bigint }, [string]>;
  readonly #insertOrder: Statement<unknown, OrderValues>;
  readonly #insertOrderWithId: Statement<unknown, [bigint, ...OrderValues]>;
  readonly #updateOrder: Statement<unknown, [...OrderValues, bigint]>;
  readonly #audit: AuditEntries;
  /** A number that changes when another connection commits. */
  readonly #selectDataVersion: Statement<{ data_version: bigint }, []>;
  #dataVersion: bigint | undefined;
  #othersWroteAt = -Infinity;
  #checkpointPages = 0;

  constructor(private readonly connection: Connection) {
    const select = `SELECT ${IMPORT_COLUMNS} FROM imports`;
    this.#select = connection.prepare(`${select} WHERE fingerprint = ?`);
    this.#selectUnfinished = connection.prepare(
      `${select} WHERE source = ? AND finished_at IS NULL ORDER BY started_at DESC LIMIT 1`,
    );
    this.#begin = connection.prepare(`INSERT INTO imports (fingerprint, source, options, started_at)
      VALUES (?, ?, ?, ?) ON CONFLICT (fingerprint) DO UPDATE SET source = excluded.source,
        options = excluded.options, started_at = excluded.started_at, finished_at = NULL, rows_done = 0, added = 0,
        replaced = 0, skipped = 0, rejected = 0, rejects_bytes = 0
      WHERE imports.finished_at IS NOT NULL OR imports.rows_done = 0 OR imports.options <> excluded.options`);
    this.#setProgress = connection.prepare(`UPDATE imports SET rows_done = ?, added = ?, replaced = ?,
      skipped = ?, rejected = ?, rejects_bytes = ? WHERE fingerprint = ? AND rows_done = ? AND finished_at IS NULL`);
    this.#finish = connection.prepare("UPDATE imports SET finished_at = ? WHERE fingerprint = ?");
    this.#incrementPetRevision = connection.prepare("UPDATE pet_revision SET revision = revision + 1");
    this.#insertPet = connection.prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)");
    this.#insertPetWithId = connection.prepare(
      "INSERT INTO pets (id, name, category_id, status) VALUES (?, ?, ?, ?)",
    );
    this.#updatePet = connection.prepare(
      "UPDATE pets SET name = ?, category_id = ?, status = ? WHERE id = ?",
    );
    this.#selectPets = connection.prepare(`SELECT pets.id, pets.status, orders.id AS placedOrder
      FROM pets LEFT JOIN orders ON pet_id = pets.id AND orders.status = 'placed'
      WHERE pets.id IN (SELECT value FROM json_each(?))`);
    this.#selectKeys = connection.prepare(
      "SELECT id FROM api_keys WHERE id IN (SELECT value FROM json_each(?))",
    );
    this.#selectOrders = connection.prepare(
      "SELECT id FROM orders WHERE id IN (SELECT value FROM json_each(?))",
    );
    const columns = "pet_id, status, created_at, key_id";
    this.#insertOrder = connection.prepare(`INSERT INTO orders (${columns}) VALUES (?, ?, ?, ?)`);
    this.#insertOrderWithId = connection.prepare(
      `INSERT INTO orders (id, ${columns}) VALUES (?, ?, ?, ?, ?)`,
    );
    this.#updateOrder = connection.prepare(
      "UPDATE orders SET pet_id = ?, status = ?, created_at = ?, key_id = ? WHERE id = ?",
    );
    this.#audit = new AuditEntries(connection);
    this.#selectDataVersion = connection.prepare("PRAGMA data_version");
    this.#dataVersion = this.#selectDataVersion.get()?.data_version;
  }

  findImport(fingerprint: string): ImportRecord | undefined {
    const row = translateErrors(() => this.#select.get(fingerprint));
    return row === null ? undefined : importOf(row);
  }

  findUnfinishedImport(source: string): ImportRecord | undefined {
    const row = translateErrors(() => this.#selectUnfinished.get(source));
    return row === null ? undefined : importOf(row);
  }

  beginImport({ fingerprint, source, options, startedAt }: ImportRecord): Promise<void> {
    return this.connection.transactionWhenUnlocked(() => {
      checkProgress(this.#begin.run(fingerprint, source, options, startedAt));
    });
  }

  importPets(batch: ImportBatch<ImportedPet>): Promise<BatchResult> {
    return this.#import(batch, () => {
      this.#incrementPetRevision.run();
      if (batch.rows.every(({ id }) => id === undefined)) {
        for (const pet of batch.rows) this.#insertPet.run(...petValues(pet));
        return { added: batch.rows.length, replaced: 0, skipped: 0, rejected: new Map() };
      }
      const { inserts, updates, result } = resolvePets(batch, this.#petsOf(batch.rows.map(({ id }) => id)));
      for (const [id, pet] of inserts) this.#insertPetWithId.run(id, ...petValues(pet));
      for (const [id, pet] of updates) this.#updatePet.run(...petValues(pet), id);
      return result;
    });
  }

  importOrders(batch: ImportBatch<ImportedOrder>): Promise<BatchResult> {
    return this.#import(batch, () => {
      const { rows } = batch;
      const { inserts, updates, unnumbered, result } = resolveOrders(batch, {
        pets: this.#petsOf(rows.map(({ petId }) => petId)),
        keyIds: this.#selectKeys.all(jsonOf(rows.map(({ keyId }) => keyId))).map(({ id }) => Number(id)),
        orderIds: this.#selectOrders.all(jsonOf(rows.map(({ id }) => id))).map(({ id }) => id),
      });
      // Before the insertions: an order that ends makes room for another one that is placed for the same pet.
      for (const [id, order] of updates) this.#updateOrder.run(...orderValues(order), id);
      for (const [id, order] of inserts) this.#insertOrderWithId.run(id, ...orderValues(order));
      for (const order of unnumbered) this.#insertOrder.run(...orderValues(order));
      return result;
    });
  }

  finishImport(fingerprint: string, entry: NewAuditEntry): Promise<void> {
    this.connection.run("PRAGMA synchronous = FULL");
    return this.connection.transactionWhenUnlocked(() => {
      this.#finish.run(entry.at, fingerprint);
      this.#audit.insert(entry);
    });
  }

  async close(): Promise<void> {
    this.connection.close();
  }

  async #import(batch: ImportBatch<unknown>, work: () => BatchResult): Promise<BatchResult> {
    const { commit } = batch;
    await this.#yieldToEventLoop();
    try {
      return await this.connection.transactionWhenUnlocked(() => {
        const result = work();
        if (commit === undefined) throw new Undo(result);
        const values = [...valuesOf(commit.progressAfter(result)), commit.fingerprint, commit.rowsBefore];
        // The types of a statement cannot express so many numbers before a text.
        checkProgress(this.#setProgress.run(...(values as [...number[], string, number])));
        return result;
      });
    } catch (error) {
      if (error instanceof Undo) return error.result;
      throw error;
    }
  }

  /** A server tries its writes again every few milliseconds, and needs a moment without the lock. */
  async #yieldToEventLoop(): Promise<void> {
    const version = this.#selectDataVersion.get()?.data_version;
    if (version !== this.#dataVersion) this.#othersWroteAt = performance.now();
    this.#dataVersion = version;
    const othersWrite = performance.now() - this.#othersWroteAt < OTHERS_WRITE_MS;
    this.#checkpointAt(othersWrite ? CHECKPOINT_PAGES_BESIDE_OTHERS : CHECKPOINT_PAGES);
    if (othersWrite) await Bun.sleep(PAUSE_MS);
  }

  #checkpointAt(pages: number): void {
    if (pages === this.#checkpointPages) return;
    this.#checkpointPages = pages;
    this.connection.run(`PRAGMA wal_autocheckpoint = ${pages}`);
  }

  #petsOf(ids: readonly (bigint | undefined)[]): StoredPet[] {
    return this.#selectPets.all(jsonOf(ids));
  }
}

function checkProgress({ changes }: { readonly changes: number }): void {
  if (changes === 0) throw new ConcurrentImport("another process imports the same file");
}

/** Without the rows that have no value. */
function jsonOf(ids: readonly (bigint | number | null | undefined)[]): string {
  return `[${ids.filter((id) => id !== undefined && id !== null).join(",")}]`;
}

function petValues({ name, categoryId, status }: ImportedPet): PetValues {
  return [name, categoryId, status ?? null];
}

function orderValues({ petId, status, createdAt, keyId }: ImportedOrder): OrderValues {
  return [petId, status, createdAt, keyId];
}

function valuesOf(progress: ImportProgress): number[] {
  const { rows, added, replaced, skipped, rejected, rejectsBytes } = progress;
  return [rows, added, replaced, skipped, rejected, rejectsBytes];
}
