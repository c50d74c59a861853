import type { Limits } from "../domain/rate-limit.ts";

/** What follows the prefix of a secret: 30 random characters and six of checksum. */
export const SECRET_LENGTH = 36;

/**
 * A record is one cache line, since with many keys each line fetched from memory costs more than all the rest.
 *
 *      0  the secret, without its prefix   (a byte a character)
 *     36  keyId   (u32)
 *     40  validUntil   (f64)
 *     48  perMinute, perDay   (u32)
 *     56  the next record in its list by secret, and in that by key, each plus one   (u32)
 */
const KEY_ID = 36;
const VALID_UNTIL = 40;
const PER_MINUTE = 48;
const PER_DAY = 52;
const NEXT_BY_SECRET = 56;
const NEXT_BY_KEY = 60;
const RECORD_BYTES = 64;

/** Words of a record, and where the next record of the same list is named. */
export const BY_SECRET = { word: 0, next: NEXT_BY_SECRET } as const;
export const BY_KEY = { word: KEY_ID, next: NEXT_BY_KEY } as const;
export type By = typeof BY_SECRET | typeof BY_KEY;
type Word = By[keyof By];

/** A page is a quarter of a megabyte, of which only what was written takes up memory. */
const PAGE_SHIFT = 12;
const PAGE_MASK = (1 << PAGE_SHIFT) - 1;

/** What a secret opens. */
export interface Opens {
  readonly keyId: number;
  readonly limits: Limits;
  readonly validUntil: number;
}

/** Numbered records in memory that the collector does not trace. They grow by a page at a time, and nothing moves. */
export class KnownRecords {
  readonly #pages: DataView[] = [];

  /** Makes a record exist; each once, in order. */
  open(record: number): void {
    if ((record & PAGE_MASK) === 0)
      this.#pages.push(new DataView(new ArrayBuffer(RECORD_BYTES << PAGE_SHIFT)));
  }

  write(record: number, secret: string, { keyId, limits, validUntil }: Opens): void {
    const page = this.#page(record);
    const at = offset(record);
    for (let i = 0; i < SECRET_LENGTH; i++) page.setUint8(at + i, secret.charCodeAt(i));
    page.setUint32(at + KEY_ID, keyId, true);
    page.setFloat64(at + VALID_UNTIL, validUntil, true);
    page.setUint32(at + PER_MINUTE, limits.perMinute, true);
    page.setUint32(at + PER_DAY, limits.perDay, true);
  }

  keyId(record: number): number {
    return this.#page(record).getUint32(offset(record) + KEY_ID, true);
  }

  validUntil(record: number): number {
    return this.#page(record).getFloat64(offset(record) + VALID_UNTIL, true);
  }

  limits(record: number): Limits {
    const page = this.#page(record);
    const at = offset(record);
    return {
      perMinute: page.getUint32(at + PER_MINUTE, true),
      perDay: page.getUint32(at + PER_DAY, true),
    };
  }

  word(record: number, word: Word): number {
    return this.#page(record).getInt32(offset(record) + word, true);
  }

  setWord(record: number, word: Word, value: number): void {
    this.#page(record).setInt32(offset(record) + word, value, true);
  }

  /** Every character is compared, whichever differ: the time that this takes does not tell how many were right. */
  isOf(record: number, text: string, from: number): boolean {
    const page = this.#page(record);
    const at = offset(record);
    let difference = 0;
    let all = 0;
    for (let i = 0; i < SECRET_LENGTH; i += 4) {
      const a = text.charCodeAt(from + i);
      const b = text.charCodeAt(from + i + 1);
      const c = text.charCodeAt(from + i + 2);
      const d = text.charCodeAt(from + i + 3);
      all |= a | b | c | d;
      difference |= page.getInt32(at + i, true) ^ (a | (b << 8) | (c << 16) | (d << 24));
    }
    // A character of more than a byte runs into its neighbours, and could pass for two that are right.
    return difference === 0 && all <= 0xff;
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

/** The first four characters of a secret, as its record has them. */
export function firstWord(text: string, from: number): number {
  return (
    text.charCodeAt(from) |
    (text.charCodeAt(from + 1) << 8) |
    (text.charCodeAt(from + 2) << 16) |
    (text.charCodeAt(from + 3) << 24)
  );
}
