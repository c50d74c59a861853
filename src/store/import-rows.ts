import type { PetStatus } from "../domain/resources.ts";
import type {
  BatchResult,
  ConflictRule,
  ImportBatch,
  ImportedOrder,
  ImportedPet,
  ImportRecord,
  RowProblem,
} from "../domain/data-transfer.ts";

/*
 * What both databases do with the rows of an import that refer to stored rows: they read those of a whole batch, these
 * functions decide, and they write what is to be inserted and updated.
 */

/** Rows whose identifiers are kept: the last one of each identifier. */
export interface Resolution<Row> {
  readonly inserts: ReadonlyMap<bigint, Row>;
  readonly updates: ReadonlyMap<bigint, Row>;
  /** Rows without an identifier, in their order. */
  readonly unnumbered: readonly Row[];
  readonly result: BatchResult;
}

export interface StoredPet {
  readonly id: bigint;
  readonly status: PetStatus | null;
  /** The order that is placed for the pet. */
  readonly placedOrder: bigint | null;
}

/** `stored` has the pets that exist among the identifiers of the rows. */
export function resolvePets(
  { rows, onConflict }: Pick<ImportBatch<ImportedPet>, "rows" | "onConflict">,
  stored: readonly StoredPet[],
): Resolution<ImportedPet> {
  const byId = new Map(stored.map((pet) => [pet.id, pet]));
  return resolve(rows, {
    onConflict,
    isStored: (id) => byId.has(id),
    problemOf: ({ id, status }) => {
      const { placedOrder = null, status: before = null } = (id !== undefined && byId.get(id)) || {};
      if (placedOrder === null || before === (status ?? null)) return undefined;
      return `status cannot change: pet ${id} has the placed order ${placedOrder}`;
    },
  });
}

/** What the orders of a batch refer to. */
export interface OrderReferences {
  /** The pets that exist among those of the rows. */
  readonly pets: readonly StoredPet[];
  /** The keys that exist among those of the rows. */
  readonly keyIds: readonly number[];
  /** The orders that exist among the identifiers of the rows. */
  readonly orderIds: readonly bigint[];
}

export function resolveOrders(
  { rows, onConflict }: Pick<ImportBatch<ImportedOrder>, "rows" | "onConflict">,
  references: OrderReferences,
): Resolution<ImportedOrder> {
  const pets = new Map(references.pets.map((pet) => [pet.id, pet]));
  const keyIds = new Set(references.keyIds);
  const stored = new Set(references.orderIds);
  /** The identifier of the placed order of each pet; 0 for one that has no identifier yet. */
  const placed = new Map(
    references.pets.flatMap((pet) => (pet.placedOrder ? [[pet.id, pet.placedOrder]] : [])),
  );
  return resolve(rows, {
    onConflict,
    isStored: (id) => stored.has(id),
    problemOf: ({ id, petId, keyId, status }) => {
      const pet = pets.get(petId);
      if (pet === undefined) return `petId is ${petId}, and there is no such pet`;
      if (keyId !== null && !keyIds.has(keyId)) return `keyId is ${keyId}, and there is no such key`;
      if (status !== "placed") {
        if (placed.get(petId) === id) placed.delete(petId);
        return undefined;
      }
      const other = placed.get(petId);
      if (other !== undefined && other !== id) return `status is placed, and pet ${petId} has a placed order`;
      if (pet.status !== "pending") {
        return `status is placed, and pet ${petId} is ${pet.status ?? "without a status"} instead of pending`;
      }
      placed.set(petId, id ?? 0n);
      return undefined;
    },
  });
}

interface Rules<Row> {
  readonly onConflict: ConflictRule;
  readonly isStored: (id: bigint) => boolean;
  readonly problemOf: (row: Row) => RowProblem | undefined;
}

/** Row after row, so that a row meets those before it in the same batch as it meets those of earlier batches. */
function resolve<Row extends { readonly id?: bigint }>(
  rows: readonly Row[],
  { onConflict, isStored, problemOf }: Rules<Row>,
): Resolution<Row> {
  const inserts = new Map<bigint, Row>();
  const updates = new Map<bigint, Row>();
  const unnumbered: Row[] = [];
  const rejected = new Map<number, RowProblem>();
  let skipped = 0;
  let replaced = 0;
  for (const [index, row] of rows.entries()) {
    const { id } = row;
    const exists = id !== undefined && (inserts.has(id) || isStored(id));
    if (exists && onConflict === "skip") {
      skipped++;
      continue;
    }
    const problem = exists && onConflict === "reject" ? `id is ${id}, which exists already` : problemOf(row);
    if (problem !== undefined) rejected.set(index, problem);
    else if (id === undefined) unnumbered.push(row);
    else if (exists) {
      replaced++;
      (inserts.has(id) ? inserts : updates).set(id, row);
    } else inserts.set(id, row);
  }
  const added = inserts.size + unnumbered.length;
  return { inserts, updates, unnumbered, result: { added, replaced, skipped, rejected } };
}

/** A row of the table of imports, as both databases return it. Counts are far below 2^53. */
export interface ImportRow {
  readonly fingerprint: string;
  readonly source: string;
  readonly options: string;
  readonly startedAt: bigint;
  readonly finishedAt: bigint | null;
  readonly rowsDone: bigint;
  readonly added: bigint;
  readonly replaced: bigint;
  readonly skipped: bigint;
  readonly rejected: bigint;
  readonly rejectsBytes: bigint;
}

export const IMPORT_COLUMNS = `fingerprint, source, options, started_at AS "startedAt", finished_at AS "finishedAt",
  rows_done AS "rowsDone", added, replaced, skipped, rejected, rejects_bytes AS "rejectsBytes"`;

export function importOf(row: ImportRow): ImportRecord {
  const { fingerprint, source, options, finishedAt } = row;
  return {
    fingerprint,
    source,
    options,
    startedAt: Number(row.startedAt),
    ...(finishedAt !== null && { finishedAt: Number(finishedAt) }),
    progress: {
      rows: Number(row.rowsDone),
      added: Number(row.added),
      replaced: Number(row.replaced),
      skipped: Number(row.skipped),
      rejected: Number(row.rejected),
      rejectsBytes: Number(row.rejectsBytes),
    },
  };
}
