import type { SQL } from "bun";
import type { NewAuditEntry } from "../../../domain/audit.ts";
import {
  type BatchResult,
  ConcurrentImport,
  type ImportBatch,
  type ImportedOrder,
  type ImportedPet,
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
import { connect, nextIdLock, toUnavailable } from "../connection.ts";
import { insertAudit } from "../audit.ts";

/** An import waits longer than a request of a client does. */
const TIMEOUT_MS = 30_000;

/**
 * Commits of batches do not wait for the disk. After a crash of PostgreSQL the last batches may be missing, together
 * with their progress, so that the import continues before them. The last transaction waits for the disk.
 */
export function openImportStore(url: string, schema: string | undefined): ImportStore {
  const sql = connect(url, {
    schema,
    maxConnections: 1,
    connectMs: TIMEOUT_MS,
    statementMs: TIMEOUT_MS,
    lockMs: TIMEOUT_MS,
    idleInTransactionMs: TIMEOUT_MS,
    waitsForDisk: false,
  });
  return new PostgresImportStore(sql);
}

/** Undoes a trial. */
class Undo extends Error {
  constructor(readonly result: BatchResult) {
    super("undo");
  }
}

const SELECT = `SELECT ${IMPORT_COLUMNS} FROM imports`;
const BEGIN = `INSERT INTO imports (fingerprint, source, options, started_at) VALUES ($1, $2, $3, $4)
  ON CONFLICT (fingerprint) DO UPDATE SET source = excluded.source, options = excluded.options,
    started_at = excluded.started_at, finished_at = NULL, rows_done = 0, added = 0, replaced = 0, skipped = 0,
    rejected = 0, rejects_bytes = 0
  WHERE imports.finished_at IS NOT NULL OR imports.rows_done = 0 OR imports.options <> excluded.options
  RETURNING 1 AS done`;
const SET_PROGRESS = `UPDATE imports SET rows_done = $1, added = $2, replaced = $3, skipped = $4, rejected = $5,
    rejects_bytes = $6
  WHERE fingerprint = $7 AND rows_done = $8 AND finished_at IS NULL RETURNING 1 AS done`;

/**
 * One statement, so that the next batch is read meanwhile. Without the progress nothing is inserted. ORDER BY applies
 * before the identifiers are assigned, so the first pet gets the lowest.
 */
const IMPORT_PETS = `
  WITH progress AS (${SET_PROGRESS}),
  ${nextIdLock("pets")},
  inserted AS (
    INSERT INTO pets (name, category_id, status)
    SELECT name, category_id, status
    FROM progress, next_id_lock,
      unnest($9::text[], $10::int8[], $11::text[]) WITH ORDINALITY AS given (name, category_id, status, place)
    ORDER BY place)
  SELECT done FROM progress`;
const INSERT_PETS_WITH_IDS = `INSERT INTO pets (id, name, category_id, status) OVERRIDING SYSTEM VALUE
  SELECT * FROM unnest($1::int8[], $2::text[], $3::int8[], $4::text[])`;
const UPDATE_PETS = `UPDATE pets SET name = given.name, category_id = given.category_id, status = given.status
  FROM unnest($1::int8[], $2::text[], $3::int8[], $4::text[]) AS given (id, name, category_id, status)
  WHERE pets.id = given.id`;
/** The rows are locked, so that no order is placed for them and none of them is deleted before the commit. */
const SELECT_PETS = `SELECT pets.id, pets.status,
    (SELECT orders.id FROM orders WHERE pet_id = pets.id AND orders.status = 'placed') AS "placedOrder"
  FROM pets WHERE id = ANY ($1::int8[]) ORDER BY id FOR NO KEY UPDATE`;

const INSERT_ORDERS = `
  WITH ${nextIdLock("orders")}
  INSERT INTO orders (pet_id, status, created_at, key_id)
  SELECT pet_id, status, created_at, key_id
  FROM next_id_lock, unnest($1::int8[], $2::text[], $3::int8[], $4::int8[])
    WITH ORDINALITY AS given (pet_id, status, created_at, key_id, place)
  ORDER BY place`;
const INSERT_ORDERS_WITH_IDS = `INSERT INTO orders (id, pet_id, status, created_at, key_id) OVERRIDING SYSTEM VALUE
  SELECT * FROM unnest($1::int8[], $2::int8[], $3::text[], $4::int8[], $5::int8[])`;
const UPDATE_ORDERS = `UPDATE orders SET pet_id = given.pet_id, status = given.status,
    created_at = given.created_at, key_id = given.key_id
  FROM unnest($1::int8[], $2::int8[], $3::text[], $4::int8[], $5::int8[])
    AS given (id, pet_id, status, created_at, key_id)
  WHERE orders.id = given.id`;

/** The next identifier follows the highest that was kept. */
const advanceIds = (table: "pets" | "orders") => `SELECT setval(pg_get_serial_sequence('${table}', 'id'),
  greatest($1::int8, (SELECT last_value FROM ${table}_id_seq)))`;

const lockNextId = (table: "pets" | "orders") => `WITH ${nextIdLock(table)} SELECT FROM next_id_lock`;

class PostgresImportStore implements ImportStore {
  /** Creates of clients wait while a batch is stored. */
  readonly rowsPerBatch = 1_000;

  constructor(private readonly sql: SQL) {}

  async findImport(fingerprint: string): Promise<ImportRecord | undefined> {
    const [row] = await this.#query<ImportRow>(`${SELECT} WHERE fingerprint = $1`, [fingerprint]);
    return row && importOf(row);
  }

  async findUnfinishedImport(source: string): Promise<ImportRecord | undefined> {
    const condition = "WHERE source = $1 AND finished_at IS NULL ORDER BY started_at DESC LIMIT 1";
    const [row] = await this.#query<ImportRow>(`${SELECT} ${condition}`, [source]);
    return row && importOf(row);
  }

  async beginImport({ fingerprint, source, options, startedAt }: ImportRecord): Promise<void> {
    checkProgress(await this.#query(BEGIN, [fingerprint, source, options, startedAt]));
  }

  importPets(batch: ImportBatch<ImportedPet>): Promise<BatchResult> {
    const { rows } = batch;
    if (rows.every(({ id }) => id === undefined)) return this.#addPets(batch);
    return this.#import(batch, async (tx) => {
      // Locks in the order of the other transactions: next pet, pet.
      await tx.unsafe(lockNextId("pets"));
      const stored = await petsOf(
        tx,
        rows.map(({ id }) => id),
      );
      const { inserts, updates, result } = resolvePets(batch, stored);
      if (inserts.size > 0) {
        const ids = [...inserts.keys()];
        await tx.unsafe(INSERT_PETS_WITH_IDS, [ids, ...petArrays([...inserts.values()])]);
        await tx.unsafe(advanceIds("pets"), [highest(ids)]);
      }
      if (updates.size > 0) {
        await tx.unsafe(UPDATE_PETS, [[...updates.keys()], ...petArrays([...updates.values()])]);
      }
      return result;
    });
  }

  async #addPets({ rows, commit }: ImportBatch<ImportedPet>): Promise<BatchResult> {
    const result = { added: rows.length, replaced: 0, skipped: 0, rejected: new Map() };
    if (commit === undefined) return result;
    const done = await this.#query(IMPORT_PETS, [...progressValues(commit, result), ...petArrays(rows)]);
    checkProgress(done);
    return result;
  }

  importOrders(batch: ImportBatch<ImportedOrder>): Promise<BatchResult> {
    return this.#import(batch, async (tx) => {
      const { rows } = batch;
      // Locks in the order of the other transactions: order, pet, next order.
      const orderIds = await idsOf(
        tx,
        "SELECT id FROM orders WHERE id = ANY ($1::int8[]) FOR UPDATE",
        rows.map(({ id }) => id),
      );
      const pets = await petsOf(
        tx,
        rows.map(({ petId }) => petId),
      );
      const keyIds = await idsOf(
        tx,
        "SELECT id FROM api_keys WHERE id = ANY ($1::int8[])",
        rows.map(({ keyId }) => keyId),
      );
      const { inserts, updates, unnumbered, result } = resolveOrders(batch, {
        pets,
        keyIds: keyIds.map(Number),
        orderIds,
      });
      if (updates.size > 0) {
        await tx.unsafe(UPDATE_ORDERS, [[...updates.keys()], ...orderArrays([...updates.values()])]);
      }
      if (inserts.size > 0) {
        const ids = [...inserts.keys()];
        await tx.unsafe(lockNextId("orders"));
        await tx.unsafe(INSERT_ORDERS_WITH_IDS, [ids, ...orderArrays([...inserts.values()])]);
        await tx.unsafe(advanceIds("orders"), [highest(ids)]);
      }
      if (unnumbered.length > 0) await tx.unsafe(INSERT_ORDERS, orderArrays(unnumbered));
      return result;
    });
  }

  async finishImport(fingerprint: string, entry: NewAuditEntry): Promise<void> {
    await this.#transaction(async (tx) => {
      await tx.unsafe("SET LOCAL synchronous_commit = on");
      await tx`UPDATE imports SET finished_at = ${entry.at} WHERE fingerprint = ${fingerprint}`;
      await insertAudit(tx, entry);
    });
  }

  async close(): Promise<void> {
    await this.sql.close({ timeout: 0 });
  }

  async #import(batch: ImportBatch<unknown>, work: (tx: SQL) => Promise<BatchResult>): Promise<BatchResult> {
    const { commit } = batch;
    try {
      return await this.#transaction(async (tx) => {
        const result = await work(tx);
        if (commit === undefined) throw new Undo(result);
        checkProgress(await tx.unsafe<unknown[]>(SET_PROGRESS, progressValues(commit, result)));
        return result;
      });
    } catch (error) {
      if (error instanceof Undo) return error.result;
      throw error;
    }
  }

  async #transaction<T>(work: (tx: SQL) => Promise<T>): Promise<T> {
    try {
      // `begin` returns what `work` returns; its type allows for arrays of queries too.
      return (await this.sql.begin(work)) as T;
    } catch (error) {
      throw toUnavailable(error);
    }
  }

  async #query<Row>(text: string, values: readonly unknown[]): Promise<Row[]> {
    try {
      return await this.sql.unsafe<Row[]>(text, [...values]);
    } catch (error) {
      throw toUnavailable(error);
    }
  }
}

type Commit = NonNullable<ImportBatch<unknown>["commit"]>;

/** The values of SET_PROGRESS. */
function progressValues({ fingerprint, rowsBefore, progressAfter }: Commit, result: BatchResult): unknown[] {
  const { rows, added, replaced, skipped, rejected, rejectsBytes } = progressAfter(result);
  return [rows, added, replaced, skipped, rejected, rejectsBytes, fingerprint, rowsBefore];
}

function checkProgress(updated: readonly unknown[]): void {
  if (updated.length === 0) throw new ConcurrentImport("another process imports the same file");
}

function petsOf(tx: SQL, ids: readonly (bigint | undefined)[]): Promise<StoredPet[]> {
  return tx.unsafe<StoredPet[]>(SELECT_PETS, [ids.filter((id) => id !== undefined)]);
}

async function idsOf(
  tx: SQL,
  select: string,
  ids: readonly (bigint | number | null | undefined)[],
): Promise<bigint[]> {
  const given = ids.filter((id) => id !== undefined && id !== null);
  if (given.length === 0) return [];
  const rows = await tx.unsafe<{ id: bigint }[]>(select, [given]);
  return rows.map(({ id }) => id);
}

function petArrays(pets: readonly ImportedPet[]): unknown[][] {
  return [
    pets.map(({ name }) => name),
    pets.map(({ categoryId }) => categoryId),
    pets.map(({ status }) => status ?? null),
  ];
}

function orderArrays(orders: readonly ImportedOrder[]): unknown[][] {
  return [
    orders.map(({ petId }) => petId),
    orders.map(({ status }) => status),
    orders.map(({ createdAt }) => createdAt),
    orders.map(({ keyId }) => keyId),
  ];
}

function highest(ids: readonly bigint[]): bigint {
  return ids.reduce((highest, id) => (id > highest ? id : highest), 0n);
}
