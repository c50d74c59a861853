import { rejection } from "../contract/errors.ts";
import type { IdempotencyRejection, IdempotentRequest, WriteResult } from "./ports.ts";

/** How long a repeated request gets the result of the first one. Afterwards its Idempotency-Key can be used again. */
export const IDEMPOTENCY_LIFETIME_MS = 24 * 60 * 60 * 1000;

/** The stored result of a successful write. */
export interface IdempotencyRecord {
  readonly fingerprint: string;
  readonly id: bigint;
  readonly body: string;
}

export const STILL_IN_PROGRESS: IdempotencyRejection = rejection(
  "idempotency_conflict",
  "A request with this Idempotency-Key is still in progress. Retry in a moment.",
);

const KEY_REUSED: IdempotencyRejection = rejection(
  "idempotency_key_reused",
  "This Idempotency-Key was already used with a different request body. Use a new key.",
);

/** The result of a request whose record exists. */
export function replay(
  request: IdempotentRequest,
  { fingerprint, id, body }: IdempotencyRecord,
): WriteResult | IdempotencyRejection {
  return request.fingerprint === fingerprint ? { id, body, replayed: true } : KEY_REUSED;
}
