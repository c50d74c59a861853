import {
  DEPRECATED_OPERATIONS,
  type KeyCounts,
  OPERATION_IDS,
  type OperationCounts,
  type RequestCounts,
  type UsageRow,
} from "../domain/usage-history.ts";

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
