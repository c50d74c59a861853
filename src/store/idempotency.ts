import type { IdempotencyRejection, IdempotentRequest } from "../domain/ports.ts";
import { IDEMPOTENCY_CONFLICT } from "../domain/rejections.ts";

export type IdempotentOperation = "createPet" | "placeOrder";

/** Unique for each idempotent request. PostgreSQL locks under this name, so releases must agree on it. */
export function requestName(
  operation: IdempotentOperation,
  { keyId, idempotencyKey }: IdempotentRequest,
): string {
  return `${keyId} ${operation} ${idempotencyKey}`;
}

/** The idempotent requests that this process is executing. */
export class InProgressRequests {
  readonly #names = new Set<string>();

  /** Runs the work, unless the same request is in progress. */
  async run<T>(
    operation: IdempotentOperation,
    request: IdempotentRequest,
    work: () => Promise<T>,
  ): Promise<T | IdempotencyRejection> {
    const name = requestName(operation, request);
    if (this.#names.has(name)) return IDEMPOTENCY_CONFLICT;
    this.#names.add(name);
    try {
      return await work();
    } finally {
      this.#names.delete(name);
    }
  }
}
