import { crc32, sha256 } from "../runtime/hash.ts";
import type { Environment } from "./environments.ts";

/** The beginning of every API key, by environment. */
export const KEY_PREFIX = { production: "pet_live_", staging: "pet_test_" } as const satisfies Record<
  Environment,
  string
>;

/** The beginning of every secret that the service makes. The logs, the messages and the console know all of them. */
export const SECRET_PREFIX = {
  ...KEY_PREFIX,
  /** The token of an operator. */
  admin: "pet_admin_",
  /** A code with which an operator signs in. */
  code: "pet_code_",
  /** The token of a session: its cookie and its secret, with a point between them. */
  session: "pet_session_",
} as const;

/** What all of them begin with. */
export const ANY_SECRET_PREFIX = "pet_";

/** What is stored of a new secret. */
export interface NewSecret {
  /** The SHA-256 of the secret, in hexadecimal. */
  readonly hash: string;
  readonly hint: string;
}

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH = 30;
const CHECK_LENGTH = 6;
const WELL_FORMED = new RegExp(`^(?:${Object.values(KEY_PREFIX).join("|")})[0-9A-Za-z]{36}$`);
/** The greatest multiple of 62 in a byte. Bytes from it on are discarded, so that every character is equally likely. */
const FAIR_BYTES = 248;

/** Generates a secret: prefix, 30 random base62 characters (178 bits), six characters of checksum. */
export function generateSecret(environment: Environment): string {
  const secret = KEY_PREFIX[environment] + randomBase62(RANDOM_LENGTH);
  return secret + checksum(secret);
}

/** Generates random letters and digits. A double click selects all of them, and a URL needs no escapes. */
export function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length * 2))) {
      if (byte < FAIR_BYTES && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECK_LENGTH; i++) {
    digits = ALPHABET[rest % ALPHABET.length] + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits;
}

/** Detects typing errors without a lookup. */
export function isWellFormedSecret(text: string, environment: Environment): boolean {
  if (!WELL_FORMED.test(text) || !text.startsWith(KEY_PREFIX[environment])) return false;
  return checksum(text.slice(0, -CHECK_LENGTH)) === text.slice(-CHECK_LENGTH);
}

const HINT_LENGTH = 4;

/** Returns the part of a secret by which operators recognize it. 130 of its 178 bits stay unknown. */
export function hintOf(secret: string): string {
  const start = secret.lastIndexOf("_") + 1 + HINT_LENGTH;
  return `${secret.slice(0, start)}…${secret.slice(-HINT_LENGTH)}`;
}

export function toNewSecret(secret: string): NewSecret {
  return { hash: hashSecret(secret), hint: hintOf(secret) };
}

export function hashSecret(secret: string): string {
  return sha256(secret);
}

/** Fewer than four characters are in many hints by chance. */
const HINT_PART = /^[\w…]{4,}$/;

/** Without the ellipsis, more than four characters of a hint begin in the prefix, which excludes most words. */
export function canBePartOfHint(text: string): boolean {
  if (!HINT_PART.test(text)) return false;
  if (text.length === 4 || text.includes("…")) return true;
  const lowerCase = text.toLowerCase();
  return Object.values(KEY_PREFIX).some(
    (prefix) =>
      prefix.includes(lowerCase) || [1, 2, 3, 4].some((n) => prefix.endsWith(lowerCase.slice(0, -n))),
  );
}
