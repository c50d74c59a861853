import type { OperatorOrder } from "../domain/corrections.ts";
import type { PetQuery } from "../domain/ports.ts";
import type { Order, OrderStatus, Pet, PetStatus } from "../domain/resources.ts";
import {
  DEPRECATED_OPERATIONS,
  type KeyCounts,
  OPERATION_IDS,
  type OperationCounts,
  type RequestCounts,
  type UsageRow,
} from "../domain/usage-history.ts";

/*
 * Rows as both databases return them, and the domain objects they become. Aliases are quoted because PostgreSQL folds
 * unquoted names to lower case.
 */

export interface PetRow {
  readonly id: bigint;
  readonly name: string;
  readonly categoryId: bigint;
  readonly status: PetStatus | null;
}

export const PET_COLUMNS = `id, name, category_id AS "categoryId", status`;

/** A status that is null in the row is absent from the pet. */
export function petOf(row: PetRow): Pet {
  return hasStatus(row) ? row : { id: row.id, name: row.name, categoryId: row.categoryId };
}

function hasStatus(row: PetRow): row is PetRow & { readonly status: PetStatus } {
  return row.status !== null;
}

export interface OrderRow {
  readonly id: bigint;
  readonly petId: bigint;
  readonly status: OrderStatus;
  readonly createdAt: bigint;
}

export const ORDER_COLUMNS = `id, pet_id AS "petId", status, created_at AS "createdAt"`;

export function orderOf({ id, petId, status, createdAt }: OrderRow): Order {
  return { id, petId, status, createdAt: timeOf(createdAt) };
}

function timeOf(ms: bigint): string {
  return new Date(Number(ms)).toISOString();
}

/** The key is null where an earlier release recorded none, and so is the time at which it closed the order. */
export type OperatorOrderRow = OrderRow & { readonly keyId: bigint | null; readonly closedAt: bigint | null };

export const OPERATOR_ORDER_COLUMNS = `${ORDER_COLUMNS}, key_id AS "keyId", closed_at AS "closedAt"`;

export function operatorOrderOf(row: OperatorOrderRow): OperatorOrder {
  const { keyId, closedAt } = row;
  return {
    ...orderOf(row),
    keyId: keyId === null ? null : Number(keyId),
    closedAt: closedAt === null ? null : timeOf(closedAt),
  };
}

/** The identifiers that a query selects, from its cursor on. */
export function idsAfter({ ids = [], after }: PetQuery): readonly bigint[] {
  return after === undefined ? ids : ids.filter((id) => id > after);
}

/*
 * Both databases have one row per key and interval. The counts of the operations are in one column, as JSON: a sum over
 * all keys reads a third of the rows that a row per operation would take, and adding to one key changes one row.
 */

/** Admitted requests and errors by operation: `{"listPets":[12,1]}`. */
type StoredOperations = Readonly<Record<string, readonly [admitted: number, errors: number] | undefined>>;

export interface StoredCounts extends RequestCounts {
  readonly start: number;
  readonly operations: string;
}

/** The deprecated operations that the key has called. */
export function deprecatedIn({ byOperation }: KeyCounts): readonly string[] {
  return DEPRECATED_OPERATIONS.filter((id) => byOperation.some(({ operation }) => operation === id));
}

export function encodeOperations(byOperation: readonly OperationCounts[]): string {
  const entries = byOperation.map(({ operation, admitted, errors }) => [operation, [admitted, errors]]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** The stored counts with those of the key added. */
export function addOperations(stored: string, { byOperation }: KeyCounts): string {
  const sums: Record<string, readonly [number, number] | undefined> = { ...parse(stored) };
  for (const { operation, admitted, errors } of byOperation) {
    const [storedAdmitted, storedErrors] = sums[operation] ?? [0, 0];
    sums[operation] = [storedAdmitted + admitted, storedErrors + errors];
  }
  return JSON.stringify(sums);
}

/** One row per operation; the requests that belong to none of them come last. */
export function usageRowsOf(keyId: number, stored: StoredCounts): UsageRow[] {
  const { start } = stored;
  const operations = parse(stored.operations);
  const rows: UsageRow[] = [];
  let { admitted, errors } = stored;
  for (const operation of OPERATION_IDS) {
    const counts = operations[operation];
    if (counts === undefined) continue;
    rows.push({ keyId, start, operation, admitted: counts[0], limited: 0, banned: 0, errors: counts[1] });
    admitted -= counts[0];
    errors -= counts[1];
  }
  const { limited, banned } = stored;
  if (admitted + limited + banned > 0) {
    rows.push({ keyId, start, operation: "none", admitted, limited, banned, errors });
  }
  return rows;
}

/** What this release or another one has written. */
function parse(text: string): StoredOperations {
  return JSON.parse(text);
}
