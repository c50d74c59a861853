/*
 * The kinds of rows that can be imported: how they are validated, which rules they must meet, where they are stored.
 */

import { Invalid, object, type ObjectSchema, type Schema } from "../api/schema.ts";
import type { Fields } from "../domain/fields.ts";
import {
  OPERATOR_ORDER_FIELDS,
  type OperatorOrder,
  type Pet,
  PET_FIELDS,
  STATUS_WHEN_ORDERED,
} from "../domain/pets-and-orders.ts";
import { OPERATOR_ORDER_ROWS, PET_ROWS } from "../store/sql/rows.ts";
import type { Steps } from "../store/sql/steps.ts";
import { API_KEYS, type NewRow, ORDERS, PETS, type Table } from "../store/sql/tables.ts";
import { findRows, lockIds } from "../store/sql/table-rows.ts";
import type { SharedTables } from "../store/sql/table-store.ts";
import { type FileFields, fileFieldsOf } from "./file-fields.ts";

/** A row to import. If it has an identifier, it keeps it. */
export interface ImportedRow {
  readonly id?: bigint;
}

export type ImportedPet = Omit<Pet, "id"> & ImportedRow;

/** An order to import. Without `keyId` it belongs to no key. */
type ImportedOrder = Omit<OperatorOrder, "id" | "keyId" | "closedAt"> &
  Partial<Pick<OperatorOrder, "keyId" | "closedAt">> &
  ImportedRow;

/** How the rows of a file are validated and stored. */
export interface RowType<T extends ImportedRow> {
  readonly schema: ObjectSchema<T>;
  readonly fields: FileFields;
  /** Checks what the schema cannot express. */
  problemOf?(row: T): Invalid | undefined;
}

export interface ImportKind<T extends ImportedRow> extends RowType<T> {
  readonly table: Table;
  /** The values of the columns after the identifier. */
  valuesOf(row: T): NewRow;
  /** Sorts rows with identifiers for storage, if their order matters. */
  sorted?(rows: readonly T[]): readonly T[];
  /** Reads and locks the existing rows that the new ones refer to. */
  findRules(tables: SharedTables, rows: readonly T[]): Steps<RowRules<T>>;
}

/** The rules for new rows, given the stored ones. */
interface RowRules<T> {
  isStored(id: bigint): boolean;
  problemOf(row: T): Invalid | undefined;
}

/** What an import does with a row whose identifier exists already. */
export type ConflictRule = "reject" | "skip" | "replace";

export interface RowBatch<T> {
  readonly rows: readonly (T | Invalid)[];
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

interface Resolution<T> {
  /** The rows that keep their identifiers: the last one for each identifier. */
  readonly numbered: ReadonlyMap<bigint, T>;
  /** The rows without an identifier, in their order. */
  readonly unnumbered: readonly T[];
  readonly result: BatchResult;
}

/**
 * Decides what happens to each row of a batch. Rows are taken one after the other, so that earlier rows of the same
 * batch count like those of earlier batches.
 */
export function resolveConflicts<T extends ImportedRow>(
  { rows, onConflict }: RowBatch<T>,
  { isStored, problemOf }: RowRules<T>,
): Resolution<T> {
  const numbered = new Map<bigint, T>();
  const unnumbered: T[] = [];
  const rejected = new Map<number, Invalid>();
  const counts = { added: 0, replaced: 0, skipped: 0 };
  for (const [index, row] of rows.entries()) {
    if (row instanceof Invalid) {
      rejected.set(index, row);
      continue;
    }
    const { id } = row;
    const exists = id !== undefined && (numbered.has(id) || isStored(id));
    if (exists && onConflict === "skip") {
      counts.skipped++;
      continue;
    }
    const problem =
      exists && onConflict === "reject"
        ? new Invalid(`is ${id}, which exists already`, "id")
        : problemOf(row);
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

function idsOf(rows: readonly ImportedRow[]): bigint[] {
  return rows.flatMap(({ id }) => id ?? []);
}

interface StoredPet {
  readonly status: string | null;
  /** The identifier of the placed order for the pet. */
  readonly placedOrder: bigint | undefined;
}

/** Finds and locks pets, so that until the commit no order is placed for them and none of them is deleted. */
function* findPets(tables: SharedTables, ids: readonly bigint[]): Steps<Map<bigint, StoredPet>> {
  if (ids.length === 0) return new Map();
  const pets = yield* findRows(tables, PETS, { by: "id", values: ids, isLocked: true });
  const orders = yield* findRows(tables, ORDERS, { by: "pet_id", values: ids, where: "status = 'placed'" });
  const placed = new Map(orders.map((row) => [row["pet_id"], BigInt(row["id"] ?? 0)]));
  return new Map(
    pets.map(({ id = null, status = null }) => [BigInt(id ?? 0), { status, placedOrder: placed.get(id) }]),
  );
}

/** The schema of a row, with or without an identifier. */
function rowSchema<T>(fields: Fields, { hasId }: { hasId: boolean }): ObjectSchema<T> {
  const required: Record<string, Schema<unknown>> = {};
  const optional: Record<string, Schema<unknown>> = {};
  for (const [name, { schema, ifMissing }] of Object.entries(fields))
    if (name !== "id" || hasId) (ifMissing === undefined ? required : optional)[name] = schema;
  // T consists of these fields.
  return object({}, required, optional) as ObjectSchema<T>;
}

function petKind(hasId: boolean): ImportKind<ImportedPet> {
  return {
    schema: rowSchema(PET_FIELDS, { hasId }),
    fields: fileFieldsOf(PET_FIELDS),
    table: PETS,
    valuesOf: (pet) => PET_ROWS.valuesOf(pet),
    *findRules(tables, rows) {
      const ids = idsOf(rows);
      // The locks are taken in the same order as in other transactions: next pet, pet.
      if (ids.length > 0) yield* lockIds(tables, PETS);
      const stored = yield* findPets(tables, ids);
      return {
        isStored: (id) => stored.has(id),
        problemOf({ id, status }) {
          const { placedOrder, status: before = null } = (id !== undefined && stored.get(id)) || {};
          if (placedOrder === undefined || before === (status ?? null)) return undefined;
          return new Invalid(`cannot change: pet ${id} has the placed order ${placedOrder}`, "status");
        },
      };
    },
  };
}

function orderKind(hasId: boolean): ImportKind<ImportedOrder> {
  return {
    schema: rowSchema(OPERATOR_ORDER_FIELDS, { hasId }),
    fields: fileFieldsOf(OPERATOR_ORDER_FIELDS),
    problemOf: ({ status, closedAt = null }) =>
      status === "placed" && closedAt !== null
        ? new Invalid("must be missing while status is placed", "closedAt")
        : undefined,
    table: ORDERS,
    valuesOf: ({ keyId = null, closedAt = null, ...order }) =>
      OPERATOR_ORDER_ROWS.valuesOf({ ...order, keyId, closedAt }),
    /** Orders that end come first, because they allow another one to be placed for the same pet. */
    sorted: (rows) => rows.toSorted((a, b) => Number(a.status === "placed") - Number(b.status === "placed")),
    *findRules(tables, rows) {
      const keyIds = rows.flatMap(({ keyId }) => keyId ?? []);
      const petIds = rows.map(({ petId }) => petId);
      // The locks are taken in the same order as in other transactions: order, pet, next order.
      const orders = yield* findRows(tables, ORDERS, { by: "id", values: idsOf(rows), isLocked: true });
      const pets = yield* findPets(tables, petIds);
      const keys = yield* findRows(tables, API_KEYS, { by: "id", values: keyIds });
      const storedKeys = new Set(keys.map((key) => Number(key.id)));
      const stored = new Set(orders.map((order) => BigInt(order["id"] ?? 0)));
      /** The identifier of the placed order of each pet; 0 for an order without an identifier. */
      const placed = new Map(Array.from(pets, ([petId, { placedOrder }]) => [petId, placedOrder]));
      return {
        isStored: (orderId) => stored.has(orderId),
        problemOf({ id: orderId, petId, keyId = null, status }) {
          const pet = pets.get(petId);
          if (pet === undefined) return new Invalid(`is ${petId}, and there is no such pet`, "petId");
          if (keyId !== null && !storedKeys.has(keyId))
            return new Invalid(`is ${keyId}, and there is no such key`, "keyId");
          const other = placed.get(petId);
          if (status !== "placed") {
            if (other === orderId) placed.delete(petId);
            return undefined;
          }
          if (other !== undefined && other !== orderId)
            return new Invalid(`is placed, and pet ${petId} has a placed order`, "status");
          if (pet.status !== STATUS_WHEN_ORDERED)
            return new Invalid(
              `is placed, and pet ${petId} is ${pet.status ?? "without a status"} instead of ${STATUS_WHEN_ORDERED}`,
              "status",
            );
          placed.set(petId, orderId ?? 0n);
          return undefined;
        },
      };
    },
  };
}

/** With `withIds`, rows keep the identifiers that they have. */
export const IMPORT_KINDS = {
  pets: { withIds: petKind(true), withoutIds: petKind(false) },
  orders: { withIds: orderKind(true), withoutIds: orderKind(false) },
};
