import type { OperationId } from "../domain/usage-history.ts";
import { type KeyCounts, OPERATION_IDS, type OperationCounts } from "../domain/usage-history.ts";

/** After those of the operations. */
const NO_OPERATION = OPERATION_IDS.length;
const INDEX: ReadonlyMap<OperationId | undefined, number> = new Map(
  OPERATION_IDS.map((operation, index) => [operation, index]),
);

/** Requests of one key in one hour that are not stored yet. */
export class RequestCounters {
  limited = 0;
  banned = 0;
  lastUsedAt = 0;
  readonly #admitted = new Uint32Array(OPERATION_IDS.length + 1);
  readonly #errors = new Uint32Array(OPERATION_IDS.length + 1);

  admit(operation: OperationId | undefined, status: number): void {
    const index = INDEX.get(operation) ?? NO_OPERATION;
    this.#admitted[index] = (this.#admitted[index] ?? 0) + 1;
    if (status >= 400) this.#errors[index] = (this.#errors[index] ?? 0) + 1;
  }

  countsOf(keyId: number): KeyCounts {
    const { limited, banned, lastUsedAt } = this;
    const byOperation: OperationCounts[] = [];
    for (const [index, operation] of OPERATION_IDS.entries()) {
      const admitted = this.#admitted[index] ?? 0;
      if (admitted > 0) byOperation.push({ operation, admitted, errors: this.#errors[index] ?? 0 });
    }
    return {
      keyId,
      admitted: sumOf(this.#admitted),
      limited,
      banned,
      errors: sumOf(this.#errors),
      lastUsedAt,
      byOperation,
    };
  }
}

function sumOf(counts: Uint32Array): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
