import { hash } from "node:crypto";
import { IDEMPOTENCY_KEY_MAX_LENGTH } from "../contract/constants.ts";
import { INVALID_IDEMPOTENCY_KEY, type Rejection } from "../contract/errors.ts";
import type { IdempotentRequest } from "../domain/ports.ts";

const VISIBLE_ASCII = new RegExp(`^[\\x21-\\x7e]{1,${IDEMPOTENCY_KEY_MAX_LENGTH}}$`);
const QUOTED = /^"(.*)"$/;

/** `"a"` and `a` are the same key: a structured header (RFC 9651) quotes its strings. */
export function readIdempotencyKey(
  header: string | null,
  keyId: number,
  body: Uint8Array,
): IdempotentRequest | undefined | Rejection<"invalid_parameter"> {
  if (header === null) return undefined;
  const idempotencyKey = QUOTED.exec(header)?.[1] ?? header;
  if (!VISIBLE_ASCII.test(idempotencyKey)) return INVALID_IDEMPOTENCY_KEY;
  return { keyId, idempotencyKey, fingerprint: hash("sha256", body, "hex") };
}
