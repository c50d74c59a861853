import { IDEMPOTENCY_KEY_REUSED } from "./rejections.ts";
import type { IdempotencyRejection, IdempotentRequest, WriteResult } from "./ports.ts";

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
