import { IDEMPOTENCY_CONFLICT, IDEMPOTENCY_KEY_REUSED, type Rejection } from "../contract/errors.ts";
import { IDEMPOTENCY_LIFETIME_MS } from "../contract/constants.ts";
import type { IdempotentRequest, WriteResult } from "../domain/ports.ts";

/** The rules of repeated writes that hold on every engine. */
export type IdempotentOperation = "createPet" | "placeOrder";

/** An answer is kept this long. */
export const KEPT_MS = IDEMPOTENCY_LIFETIME_MS;

/** What is kept of the first successful answer. */
export interface Kept {
  readonly fingerprint: string;
  readonly id: bigint;
  readonly body: string;
}

export type IdempotencyRejection = Rejection<"idempotency_conflict" | "idempotency_key_reused">;

export const STILL_RUNNING: IdempotencyRejection = IDEMPOTENCY_CONFLICT;

export function replay({ fingerprint }: IdempotentRequest, kept: Kept): WriteResult | IdempotencyRejection {
  return kept.fingerprint === fingerprint
    ? { id: kept.id, body: kept.body, replayed: true }
    : IDEMPOTENCY_KEY_REUSED;
}

export function nameOf(operation: IdempotentOperation, { keyId, idempotencyKey }: IdempotentRequest): string {
  return `${keyId} ${operation} ${idempotencyKey}`;
}

/** IdempotencyRecords that this process has taken on and not yet answered. */
export class Claims {
  readonly #running = new Set<string>();

  /** Gives the way to let go of the claim, or undefined when the same idempotentRequest is under way. */
  take(operation: IdempotentOperation, idempotentRequest: IdempotentRequest): (() => void) | undefined {
    const name = nameOf(operation, idempotentRequest);
    if (this.#running.has(name)) return undefined;
    this.#running.add(name);
    return () => this.#running.delete(name);
  }
}
