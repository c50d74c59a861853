import { type Rejection, rejection } from "../contract/errors.ts";
import type { IdempotentRequest } from "../domain/ports.ts";
import { hash } from "node:crypto";

const VISIBLE = /^[\x21-\x7e]{1,255}$/;
const QUOTED = /^"(.*)"$/;

const MALFORMED = rejection(
  "invalid_parameter",
  "Idempotency-Key must be 1 to 255 visible ASCII characters, quoted or bare.",
);

/** `"a"` and `a` are the same key: the quotes are how structured headers write a string. */
export function readIdempotencyKey(
  header: string | null,
  keyId: number,
  bytes: Uint8Array,
): IdempotentRequest | undefined | Rejection<"invalid_parameter"> {
  if (header === null) return undefined;
  const idempotencyKey = QUOTED.exec(header)?.[1] ?? header;
  if (!VISIBLE.test(idempotencyKey)) return MALFORMED;
  return { keyId, idempotencyKey, fingerprint: hash("sha256", bytes, "hex") };
}
