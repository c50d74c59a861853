/**
 * Adds many pets or orders. Each batch is one short transaction together with its progress, so that servers can write
 * in between, and so that no row is stored twice. Running servers show imported pets within a second.
 */
import type { NewAuditEntry } from "../domain/audit.ts";
import type { NewPet, OrderStatus } from "../domain/resources.ts";
import {
  API_KEYS,
  fieldsOf,
  IMPORTS,
  type NewRow,
  ORDERS,
  PETS,
  type Row,
  type SharedTables,
  type TableTransaction,
} from "../store/tables.ts";

/** A pet with an identifier keeps it. */
export type ImportedPet = NewPet & { readonly id?: bigint };

/** Times are milliseconds since the epoch; an order without a key belongs to none. */
export interface ImportedOrder {
  readonly id?: bigint;
  readonly petId: bigint;
  readonly status: OrderStatus;
  readonly createdAt: number;
  readonly keyId: number | null;
  /** Null for one that is placed, and where it is not known. */
  readonly closedAt: number | null;
}

/** What an import does with a row whose identifier exists already. */
export type ConflictRule = "reject" | "skip" | "replace";

/** Why a row is rejected: a sentence without a full stop that begins with the name of a field. */
export type RowProblem = string;

/** How far an import has come. */
export interface ImportProgress {
  /** Rows of the file that are done, rejected ones too. */
  readonly rows: number;
  readonly added: number;
  readonly replaced: number;
  readonly skipped: number;
  readonly rejected: number;
  /** Length of the file of rejected rows. */
  readonly rejectsBytes: number;
}

export const NO_PROGRESS: ImportProgress = {
  rows: 0,
  added: 0,
  replaced: 0,
  skipped: 0,
  rejected: 0,
  rejectsBytes: 0,
};

/** An import of one file. Times are milliseconds since the epoch. */
export interface ImportRecord {
  /** What is imported, and the SHA-256 of the file. */
  readonly fingerprint: string;
  /** The path of the file, or - for standard input. */
  readonly source: string;
  /** The options that have to be the same when the import continues. */
  readonly options: string;
  readonly startedAt: number;
  readonly finishedAt?: number;
  readonly progress: ImportProgress;
}

/** What became of the rows of a batch. */
export interface BatchResult {
  readonly added: number;
  readonly replaced: number;
  readonly skipped: number;
  /** By the index of the row in the batch, ascending. */
  readonly rejected: ReadonlyMap<number, RowProblem>;
}

export interface ImportBatch<ImportedRow> {
  readonly rows: readonly ImportedRow[];
  readonly onConflict: ConflictRule;
  /** Undefined for a trial: nothing of the batch is stored. */
  readonly commit?: {
    readonly fingerprint: string;
    /** Rows that are done before this batch: another process may be importing the same file. */
    readonly rowsBefore: number;
    /** Is called before the commit. */
    readonly progressAfter: (result: BatchResult) => ImportProgress;
  };
}

/** Another process imports the same file at the same time. */
export class ConcurrentImport extends Error {}

export class ImportStore {
  constructor(private readonly tables: SharedTables) {}

  get rowsPerBatch(): number {
    return this.tables.rowsPerTransaction;
  }

  findImport(fingerprint: string): Promise<ImportRecord | undefined> {
    return this.tables.transaction((tx) => findRecord(tx, fingerprint));
  }

  /** The latest import of this path that is not finished. */
  async findUnfinishedImport(source: string): Promise<ImportRecord | undefined> {
    const query = { by: "source", values: [source], where: "finished_at IS NULL" };
    const rows = await this.tables.transaction((tx) => tx.find(IMPORTS, query));
    return rows.map(recordOf).toSorted((a, b) => b.startedAt - a.startedAt)[0];
  }

  /**
   * Replaces an earlier record of the same file. Throws ConcurrentImport if that is an import with the same options
   * that has stored rows and is not finished.
   */
  beginImport(record: Omit<ImportRecord, "progress" | "finishedAt">): Promise<void> {
    return this.tables.transaction(async (tx) => {
      const found = await findRecord(tx, record.fingerprint);
      const isContinued = found?.finishedAt === undefined && found?.options === record.options;
      if (isContinued && found.progress.rows > 0) throw concurrentImport();
      await tx.put(IMPORTS, [rowOf({ ...record, progress: NO_PROGRESS })]);
    });
  }

  /** Throws ConcurrentImport if the rows done are not `rowsBefore`. */
  importPets(batch: ImportBatch<ImportedPet>): Promise<BatchResult> {
    return this.#import(batch, async (tx) => {
      const ids = batch.rows.flatMap(({ id }) => id ?? []);
      // Locks in the order of the other transactions: next pet, pet.
      if (ids.length > 0) await tx.lockIds(PETS);
      const { numbered, unnumbered, result } = resolve(batch, petRules(await findPets(tx, ids)));
      const write = async () => {
        await tx.put(PETS, rowsOf(numbered, petValues));
        await tx.append(PETS, unnumbered.map(petValues));
      };
      return { result, write };
    });
  }

  /** Throws ConcurrentImport if the rows done are not `rowsBefore`. */
  importOrders(batch: ImportBatch<ImportedOrder>): Promise<BatchResult> {
    return this.#import(batch, async (tx) => {
      const { rows } = batch;
      const ids = rows.flatMap(({ id }) => id ?? []);
      const keyIds = rows.flatMap(({ keyId }) => keyId ?? []);
      const petIds = rows.map(({ petId }) => petId);
      // Locks in the order of the other transactions: order, pet, next order.
      const orders = await tx.find(ORDERS, { by: "id", values: ids, isLocked: true });
      const pets = await findPets(tx, petIds);
      const keys = await tx.find(API_KEYS, { by: "id", values: keyIds });
      const { numbered, unnumbered, result } = resolve(batch, orderRules({ orders, pets, keys }));
      const write = async () => {
        if (numbered.size > 0) await tx.lockIds(ORDERS);
        // An order that ends makes room for another one that is placed for the same pet.
        const placedLast = [...numbered].toSorted(
          ([, a], [, b]) => Number(isPlaced(a)) - Number(isPlaced(b)),
        );
        await tx.put(ORDERS, rowsOf(placedLast, orderValues));
        await tx.append(ORDERS, unnumbered.map(orderValues));
      };
      return { result, write };
    });
  }

  /** Resolves when everything that was imported is durable. */
  async finishImport(fingerprint: string, entry: NewAuditEntry): Promise<void> {
    await this.tables.makeDurable();
    await this.tables.transaction(async (tx) => {
      const record = await findRecord(tx, fingerprint);
      if (record) await tx.put(IMPORTS, [rowOf({ ...record, finishedAt: entry.at })]);
      await tx.addAudit(entry);
    });
  }

  close(): Promise<void> {
    return this.tables.close();
  }

  #import(
    { commit }: ImportBatch<unknown>,
    work: (tx: TableTransaction) => Promise<{ result: BatchResult; write: () => Promise<void> }>,
  ): Promise<BatchResult> {
    return this.tables.transaction(async (tx) => {
      if (commit === undefined) return (await work(tx)).result;
      const record = await findRecord(tx, commit.fingerprint);
      if (record?.progress.rows !== commit.rowsBefore || record.finishedAt !== undefined)
        throw concurrentImport();
      const { result, write } = await work(tx);
      await write();
      await tx.put(IMPORTS, [rowOf({ ...record, progress: commit.progressAfter(result) })]);
      return result;
    });
  }
}

function concurrentImport(): ConcurrentImport {
  return new ConcurrentImport("another process imports the same file");
}

async function findRecord(tx: TableTransaction, fingerprint: string): Promise<ImportRecord | undefined> {
  const query = { by: "fingerprint", values: [fingerprint], isLocked: true };
  const [row] = await tx.find(IMPORTS, query);
  return row && recordOf(row);
}

function recordOf(row: Row): ImportRecord {
  const fields = fieldsOf(IMPORTS, row);
  return {
    fingerprint: fields.fingerprint ?? "",
    source: fields.source ?? "",
    options: fields.options ?? "",
    startedAt: Number(fields.started_at),
    ...(fields.finished_at !== null && { finishedAt: Number(fields.finished_at) }),
    progress: {
      rows: Number(fields.rows_done),
      added: Number(fields.added),
      replaced: Number(fields.replaced),
      skipped: Number(fields.skipped),
      rejected: Number(fields.rejected),
      rejectsBytes: Number(fields.rejects_bytes),
    },
  };
}

/** In the order of the columns of IMPORTS. */
function rowOf({ fingerprint, source, options, startedAt, finishedAt, progress }: ImportRecord): NewRow {
  const { rows, added, replaced, skipped, rejected, rejectsBytes } = progress;
  const times = [startedAt, finishedAt ?? null];
  return [fingerprint, source, options, ...times, rows, added, replaced, skipped, rejected, rejectsBytes];
}

function petValues({ name, categoryId, status }: ImportedPet): NewRow {
  return [name, categoryId, status ?? null];
}

function orderValues({ petId, status, createdAt, keyId, closedAt }: ImportedOrder): NewRow {
  return [petId, status, createdAt, keyId, closedAt];
}

function rowsOf<T>(rows: Iterable<readonly [bigint, T]>, valuesOf: (row: T) => NewRow): NewRow[] {
  return Array.from(rows, ([id, row]) => [id, ...valuesOf(row)]);
}

function isPlaced({ status }: Pick<ImportedOrder, "status">): boolean {
  return status === "placed";
}

function integer(text: string | null | undefined): bigint {
  return BigInt(text ?? 0);
}

interface StoredPet {
  readonly status: string | null;
  /** The order that is placed for the pet. */
  readonly placedOrder: bigint | undefined;
}

/** Locks the pets: no order is placed for them and none of them is deleted before the commit. */
async function findPets(tx: TableTransaction, ids: readonly bigint[]): Promise<Map<bigint, StoredPet>> {
  if (ids.length === 0) return new Map();
  const pets = await tx.find(PETS, { by: "id", values: ids, isLocked: true });
  const orders = await tx.find(ORDERS, { by: "pet_id", values: ids, where: "status = 'placed'" });
  const placed = new Map(orders.map(([id, petId]) => [petId, integer(id)]));
  return new Map(
    pets.map(([id, , , status = null]) => [integer(id), { status, placedOrder: placed.get(id) }]),
  );
}

interface Rules<ImportedRow> {
  readonly isStored: (id: bigint) => boolean;
  readonly problemOf: (row: ImportedRow) => RowProblem | undefined;
}

/** `stored` has the pets that exist among the identifiers of the rows. */
function petRules(stored: ReadonlyMap<bigint, StoredPet>): Rules<ImportedPet> {
  return {
    isStored: (id) => stored.has(id),
    problemOf: ({ id, status }) => {
      const { placedOrder, status: before = null } = (id !== undefined && stored.get(id)) || {};
      if (placedOrder === undefined || before === (status ?? null)) return undefined;
      return `status cannot change: pet ${id} has the placed order ${placedOrder}`;
    },
  };
}

/** What exists of all that the orders of a batch refer to. */
interface OrderReferences {
  readonly orders: readonly Row[];
  readonly pets: ReadonlyMap<bigint, StoredPet>;
  readonly keys: readonly Row[];
}

function orderRules({ orders, pets, keys }: OrderReferences): Rules<ImportedOrder> {
  const keyIds = new Set(keys.map(([id]) => Number(id)));
  const stored = new Set(orders.map(([id]) => integer(id)));
  /** The identifier of the placed order of each pet; 0 for one that has no identifier yet. */
  const placed = new Map(Array.from(pets, ([id, { placedOrder }]) => [id, placedOrder]));
  return {
    isStored: (id) => stored.has(id),
    problemOf: ({ id, petId, keyId, status }) => {
      const pet = pets.get(petId);
      if (pet === undefined) return `petId is ${petId}, and there is no such pet`;
      if (keyId !== null && !keyIds.has(keyId)) return `keyId is ${keyId}, and there is no such key`;
      const other = placed.get(petId);
      if (status !== "placed") {
        if (other === id) placed.delete(petId);
        return undefined;
      }
      if (other !== undefined && other !== id) return `status is placed, and pet ${petId} has a placed order`;
      if (pet.status !== "pending") {
        return `status is placed, and pet ${petId} is ${pet.status ?? "without a status"} instead of pending`;
      }
      placed.set(petId, id ?? 0n);
      return undefined;
    },
  };
}

interface Resolution<ImportedRow> {
  /** Rows whose identifiers are kept: the last one of each identifier. */
  readonly numbered: ReadonlyMap<bigint, ImportedRow>;
  /** Rows without an identifier, in their order. */
  readonly unnumbered: readonly ImportedRow[];
  readonly result: BatchResult;
}

/** Row after row, so that a row meets those before it in the same batch as it meets those of earlier batches. */
function resolve<ImportedRow extends { readonly id?: bigint }>(
  { rows, onConflict }: ImportBatch<ImportedRow>,
  { isStored, problemOf }: Rules<ImportedRow>,
): Resolution<ImportedRow> {
  const numbered = new Map<bigint, ImportedRow>();
  const unnumbered: ImportedRow[] = [];
  const rejected = new Map<number, RowProblem>();
  let added = 0;
  let skipped = 0;
  let replaced = 0;
  for (const [index, row] of rows.entries()) {
    const { id } = row;
    const exists = id !== undefined && (numbered.has(id) || isStored(id));
    if (exists && onConflict === "skip") {
      skipped++;
      continue;
    }
    const problem = exists && onConflict === "reject" ? `id is ${id}, which exists already` : problemOf(row);
    if (problem !== undefined) {
      rejected.set(index, problem);
      continue;
    }
    if (exists) replaced++;
    else added++;
    if (id === undefined) unnumbered.push(row);
    else numbered.set(id, row);
  }
  return { numbered, unnumbered, result: { added, replaced, skipped, rejected } };
}
