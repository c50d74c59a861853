import type {
  IdempotencyRejection,
  IdempotentRequest,
  WriteResult,
} from "../domain/ports/pets-and-orders.ts";
import {
  IDEMPOTENCY_CONFLICT,
  IDEMPOTENCY_KEY_REUSED,
  IDEMPOTENCY_LIFETIME_MS,
} from "../domain/idempotency.ts";
import type { IdempotentOperation } from "../domain/operation-ids.ts";
import { deletionTime, type RetentionNow } from "./retention-clock.ts";

/**
 * A name that is unique for each idempotent request. PostgreSQL locks this name, so all releases must derive it in the
 * same way.
 */
export function requestName(
  operation: IdempotentOperation,
  { keyId, idempotencyKey }: IdempotentRequest,
): string {
  return `${keyId} ${operation} ${idempotencyKey}`;
}

/** The idempotent requests that this process is executing now. */
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

/** The response to a request whose record exists: the stored result, or a rejection if the request differs. */
export function replay(
  request: IdempotentRequest,
  { fingerprint, id, body }: IdempotencyRecord,
): WriteResult | IdempotencyRejection {
  return request.fingerprint === fingerprint ? { id, body, replayed: true } : IDEMPOTENCY_KEY_REUSED;
}

/** The time of the newest expired record at the time of a write. */
export function idempotencyExpiry(at: number, retentionNow: RetentionNow | undefined): number {
  return deletionTime(at, retentionNow) - IDEMPOTENCY_LIFETIME_MS;
}
