import type { IdempotencyRejection, IdempotentRequest, WriteResult } from "../domain/ports.ts";
import { IDEMPOTENCY_CONFLICT, IDEMPOTENCY_KEY_REUSED } from "../domain/resources.ts";

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

/** The stored result of a successful write. */
export interface IdempotencyRecord {
  readonly fingerprint: string;
  readonly id: bigint;
  readonly body: string;
}

/** The result of a request whose record exists. */
export function replay(
  request: IdempotentRequest,
  { fingerprint, id, body }: IdempotencyRecord,
): WriteResult | IdempotencyRejection {
  return request.fingerprint === fingerprint ? { id, body, replayed: true } : IDEMPOTENCY_KEY_REUSED;
}
