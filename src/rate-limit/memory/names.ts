import { createHash } from "node:crypto";
import type { Subject } from "../../domain/rate-limit.ts";

/** More than `key:` with any number has, or `address:` with any address. */
export const MAX_NAME_LENGTH = 55;

const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/** Differs in every process, so that nobody can choose addresses that fall into one bucket. */
const SEED = crypto.getRandomValues(new Int32Array(1))[0] ?? 0;

/** What a subject is filed under, a byte a character: itself, or a digest if it is like no key and no address. */
export function nameOf(subject: Subject): string {
  if (subject.length <= MAX_NAME_LENGTH && PRINTABLE_ASCII.test(subject)) return subject;
  const kind = subject.slice(0, subject.indexOf(":") + 1);
  return kind + createHash("sha256").update(subject).digest("base64url").slice(0, 32);
}

/** FNV-1a from a secret start, with its bits mixed at the end since buckets are chosen by the lowest. */
export function hashName(name: string): number {
  let hash = SEED;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x21f0aaad);
  hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97);
  return hash ^ (hash >>> 15);
}
