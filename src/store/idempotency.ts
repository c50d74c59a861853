import { type Refusal, refuse } from "../contract/errors.ts";
import type { Attempt, Written } from "../domain/ports.ts";

/** The rules of repeated writes that hold on every engine. */
export type RetriableOperation = "createPet" | "placeOrder";

/** An answer is kept this long. */
export const KEPT_MS = 24 * 60 * 60 * 1000;

/** What is kept of the first successful answer. */
export interface Kept {
  readonly fingerprint: string;
  readonly id: bigint;
  readonly body: string;
}

export type Retried = Refusal<"idempotency_conflict" | "idempotency_key_reused">;

export const STILL_RUNNING: Retried = refuse(
  "idempotency_conflict",
  "The first request with this Idempotency-Key is still running.",
);

const USED_BEFORE: Retried = refuse(
  "idempotency_key_reused",
  "This Idempotency-Key was used with another body; take a new one.",
);

export function replay({ fingerprint }: Attempt, kept: Kept): Written | Retried {
  return kept.fingerprint === fingerprint ? { id: kept.id, body: kept.body, replayed: true } : USED_BEFORE;
}

export function nameOf(operation: RetriableOperation, { keyId, idempotencyKey }: Attempt): string {
  return `${keyId} ${operation} ${idempotencyKey}`;
}

/** Attempts that this process has taken on and not yet answered. */
export class Claims {
  readonly #running = new Set<string>();

  /** Gives the way to let go of the claim, or undefined when the same attempt is under way. */
  take(operation: RetriableOperation, attempt: Attempt): (() => void) | undefined {
    const name = nameOf(operation, attempt);
    if (this.#running.has(name)) return undefined;
    this.#running.add(name);
    return () => this.#running.delete(name);
  }
}
