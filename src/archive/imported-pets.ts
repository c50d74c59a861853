/* How the rows of a file become pets: how they are validated, and which of them are stored. */

import { Invalid, object, type ObjectSchema, type Schema } from "../api/schema.ts";
import { type Pet, PET_FIELDS } from "../domain/pets-and-orders.ts";
import type { Steps } from "../store/sql/steps.ts";
import { ORDERS, PETS } from "../store/sql/tables.ts";
import { findRows, lockIds } from "../store/sql/table-rows.ts";
import type { SharedTables } from "../store/sql/table-store.ts";

/** A pet to import. If it has an identifier, it keeps it. */
export type ImportedPet = Omit<Pet, "id"> & { readonly id?: bigint };

/** The schema of a row, with its identifier or without one. */
export function importedPetSchema({ keepsIds }: { keepsIds: boolean }): ObjectSchema<ImportedPet> {
  const required: Record<string, Schema<unknown>> = {};
  const optional: Record<string, Schema<unknown>> = {};
  for (const [name, field] of Object.entries(PET_FIELDS))
    if (name !== "id" || keepsIds) ("ifMissing" in field ? optional : required)[name] = field.schema;
  // A pet consists of these fields.
  return object({}, required, optional) as ObjectSchema<ImportedPet>;
}

/** What an import does with a row whose identifier exists already. */
export type ConflictRule = "reject" | "skip" | "replace";

export interface PetBatch {
  readonly rows: readonly (ImportedPet | Invalid)[];
  readonly onConflict: ConflictRule;
}

/** The results of the rows of a batch. */
export interface BatchResult {
  readonly added: number;
  readonly replaced: number;
  readonly skipped: number;
  /** The rejections by the index of the row in the batch, in ascending order. */
  readonly rejected: ReadonlyMap<number, Invalid>;
}

interface Resolution {
  /** The pets that keep their identifiers: the last one for each identifier. */
  readonly numbered: ReadonlyMap<bigint, ImportedPet>;
  /** The pets without an identifier, in their order. */
  readonly unnumbered: readonly ImportedPet[];
  readonly result: BatchResult;
}

/**
 * Decides what happens to each row of a batch. Rows are taken one after the other, so that earlier rows of the same
 * batch count like those of earlier batches.
 */
export function* resolveConflicts(tables: SharedTables, { rows, onConflict }: PetBatch): Steps<Resolution> {
  const stored = yield* findPets(
    tables,
    rows.flatMap((row) => (row instanceof Invalid ? [] : (row.id ?? []))),
  );
  const numbered = new Map<bigint, ImportedPet>();
  const unnumbered: ImportedPet[] = [];
  const rejected = new Map<number, Invalid>();
  const counts = { added: 0, replaced: 0, skipped: 0 };
  for (const [index, row] of rows.entries()) {
    if (row instanceof Invalid) {
      rejected.set(index, row);
      continue;
    }
    const { id } = row;
    const exists = id !== undefined && (numbered.has(id) || stored.has(id));
    if (exists && onConflict === "skip") {
      counts.skipped++;
      continue;
    }
    const problem =
      exists && onConflict === "reject"
        ? new Invalid(`is ${id}, which exists already`, "id")
        : statusProblem(row, stored);
    if (problem !== undefined) {
      rejected.set(index, problem);
      continue;
    }
    counts[exists ? "replaced" : "added"]++;
    if (id === undefined) unnumbered.push(row);
    else numbered.set(id, row);
  }
  return { numbered, unnumbered, result: { ...counts, rejected } };
}

interface StoredPet {
  readonly status: string | null;
  /** The identifier of the placed order for the pet. */
  readonly placedOrder: bigint | undefined;
}

/** Finds and locks pets, so that until the commit no order is placed for them and none of them is deleted. */
function* findPets(tables: SharedTables, ids: readonly bigint[]): Steps<ReadonlyMap<bigint, StoredPet>> {
  if (ids.length === 0) return new Map();
  // The locks are taken in the same order as in other transactions: next pet, pet.
  yield* lockIds(tables, PETS);
  const pets = yield* findRows(tables, PETS, { by: "id", values: ids, isLocked: true });
  const orders = yield* findRows(tables, ORDERS, { by: "pet_id", values: ids, where: "status = 'placed'" });
  const placed = new Map(orders.map((row) => [row["pet_id"], BigInt(row["id"] ?? 0)]));
  return new Map(
    pets.map(({ id = null, status = null }) => [BigInt(id ?? 0), { status, placedOrder: placed.get(id) }]),
  );
}

function statusProblem({ id, status }: ImportedPet, stored: ReadonlyMap<bigint, StoredPet>) {
  const { placedOrder, status: before = null } = (id !== undefined && stored.get(id)) || {};
  if (placedOrder === undefined || before === (status ?? null)) return undefined;
  return new Invalid(`cannot change: pet ${id} has the placed order ${placedOrder}`, "status");
}
