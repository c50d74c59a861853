import type { Access } from "../domain/api-keys.ts";
import { PLANS, type PlanName } from "../domain/plans.ts";
import type { Limits } from "../domain/rate-limit.ts";
import { HashIndex, hashInt32, NONE } from "../hash-index.ts";

/** What the key store has on a secret. */
export interface VerifiedKey {
  readonly keyId: number;
  readonly plan: PlanName;
  readonly limits: Limits;
  readonly access: Access;
  /** The secret is invalid from this time of the wall clock on, which may be in the past. */
  readonly validUntil: number;
}

/** What follows the prefix of a secret: 30 random characters and six of checksum. */
export const SECRET_LENGTH = 36;

/**
 * A record is 64 bytes, one cache line: with many keys, fetching a line from memory takes longer than all the rest.
 *
 *      0  the secret without its prefix   (a byte a character)
 *     36  keyId, validUntil   (f64)
 *     52  perMinute   (30 bits of u32), plan   (2 bits)
 *     56  perDay   (30 bits of u32), access   (1 bit: may write)
 *     60  revision   (u32)
 */
const KEY_ID = 36;
const VALID_UNTIL = 44;
const PER_MINUTE = 52;
const PER_DAY = 56;
const REVISION = 60;
/** Limits are at most 1,000,000,000, which takes 30 bits. */
const LIMIT_BITS = 30;
const LIMIT_MASK = 2 ** LIMIT_BITS - 1;
const MAY_WRITE = 2 ** LIMIT_BITS;
const RECORD_BYTES = 64;

const PAGE_SHIFT = 12;
const PAGE_MASK = (1 << PAGE_SHIFT) - 1;

/** When this many keys have changed, the cache starts empty again instead of remembering more of them. */
const MAX_CHANGED_KEYS = 100_000;

/**
 * Verified keys by their secrets, in memory that the garbage collector does not trace. When the cache is full, the
 * oldest entry makes room. Methods take any text that ends with the secret, such as the Authorization header.
 *
 * The time of a lookup tells nothing about a secret: the hash is seeded, and two secrets with the same hash are
 * compared to the end.
 */
export class KeyCache {
  readonly #maxKeys: number;
  readonly #pages: DataView[] = [];
  #index = this.#emptyIndex();
  #count = 0;
  /** The record that is written next; when the cache is full, it is the oldest one. */
  #next = 0;
  /** The revision at which a key last changed; what the cache learned before it is out of date. */
  readonly #changedAt = new Map<number, number>();

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  get(text: string): VerifiedKey | undefined {
    const record = this.#index.find(hashOf(text), text);
    if (record === NONE) return undefined;
    const page = this.#page(record);
    const at = offset(record);
    const keyId = page.getFloat64(at + KEY_ID, true);
    if (page.getUint32(at + REVISION, true) < (this.#changedAt.get(keyId) ?? 0)) return undefined;
    const perMinuteAndPlan = page.getUint32(at + PER_MINUTE, true);
    const perDayAndAccess = page.getUint32(at + PER_DAY, true);
    return {
      keyId,
      plan: PLANS[perMinuteAndPlan >>> LIMIT_BITS] ?? "free",
      limits: {
        perMinute: perMinuteAndPlan & LIMIT_MASK,
        perDay: perDayAndAccess & LIMIT_MASK,
      },
      access: (perDayAndAccess & MAY_WRITE) === 0 ? "read" : "write",
      validUntil: page.getFloat64(at + VALID_UNTIL, true),
    };
  }

  /** Whether the secret was verified, also when its key has changed since. */
  has(text: string): boolean {
    return this.#index.find(hashOf(text), text) !== NONE;
  }

  /** `revision` is the key store's at the time of the lookup. */
  set(text: string, key: VerifiedKey, revision: number): void {
    const { keyId, plan, limits, access, validUntil } = key;
    const found = this.#index.find(hashOf(text), text);
    const record = found === NONE ? this.#addRecord(text) : found;
    const page = this.#page(record);
    const at = offset(record);
    page.setFloat64(at + KEY_ID, keyId, true);
    page.setFloat64(at + VALID_UNTIL, validUntil, true);
    page.setUint32(at + PER_MINUTE, limits.perMinute + PLANS.indexOf(plan) * 2 ** LIMIT_BITS, true);
    page.setUint32(at + PER_DAY, limits.perDay + (access === "write" ? MAY_WRITE : 0), true);
    page.setUint32(at + REVISION, revision, true);
  }

  /** Drops all secrets of a key. */
  keyChanged(keyId: number, revision: number): void {
    if (this.#changedAt.size >= MAX_CHANGED_KEYS) this.#clear();
    this.#changedAt.set(keyId, revision);
  }

  #clear(): void {
    this.#index = this.#emptyIndex();
    this.#count = 0;
    this.#next = 0;
    this.#changedAt.clear();
  }

  #emptyIndex(): HashIndex<string> {
    return new HashIndex((record, text) => this.#hasSecret(record, text));
  }

  #addRecord(text: string): number {
    const record = this.#next;
    this.#next = (record + 1) % this.#maxKeys;
    if (record < this.#count) this.#index.remove(hashOf(this.#secretAt(record)), record);
    else this.#count++;
    const page = (this.#pages[record >>> PAGE_SHIFT] ??= new DataView(
      new ArrayBuffer(RECORD_BYTES << PAGE_SHIFT),
    ));
    const start = text.length - SECRET_LENGTH;
    for (let i = 0; i < SECRET_LENGTH; i++) page.setUint8(offset(record) + i, text.charCodeAt(start + i));
    this.#index.add(hashOf(text), record);
    return record;
  }

  /** Compares every character: the time does not tell how many were right. */
  #hasSecret(record: number, text: string): boolean {
    const page = this.#page(record);
    const at = offset(record);
    const start = text.length - SECRET_LENGTH;
    let difference = 0;
    for (let i = 0; i < SECRET_LENGTH; i++) difference |= page.getUint8(at + i) ^ text.charCodeAt(start + i);
    return difference === 0;
  }

  #secretAt(record: number): string {
    return Buffer.from(this.#page(record).buffer, offset(record), SECRET_LENGTH).toString("latin1");
  }

  #page(record: number): DataView {
    const page = this.#pages[record >>> PAGE_SHIFT];
    if (page === undefined) throw new RangeError(`record ${record} does not exist`);
    return page;
  }
}

function offset(record: number): number {
  return (record & PAGE_MASK) * RECORD_BYTES;
}

/** Of the first four characters, which are random. */
function hashOf(text: string): number {
  const start = text.length - SECRET_LENGTH;
  return hashInt32(
    text.charCodeAt(start) |
      (text.charCodeAt(start + 1) << 8) |
      (text.charCodeAt(start + 2) << 16) |
      (text.charCodeAt(start + 3) << 24),
  );
}
