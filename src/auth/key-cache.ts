import { KnownLists, NONE } from "./hash-lists.ts";
import { BY_KEY, BY_SECRET, firstWord, KnownRecords, type Opens, SECRET_LENGTH } from "./key-records.ts";

/**
 * Secrets that open something, each with what it opens: a cache of a bounded number, 80 bytes each. Secrets are given
 * without their prefix.
 *
 * A secret is found by its first four characters. Long lists cannot be forced: only what the key store has confirmed
 * is ever filed, and those are secrets that we drew at random. Whoever holds many of them and would pick some that
 * share a bucket does not know the seed by which buckets are chosen.
 *
 * Nor does the time of a look-up help to guess one. All characters are compared, whichever differ, so it tells no more
 * than how many records were looked at, and that depends on the first four characters alone. Who learned these from
 * it would have 26 random ones to go, 154 of the 178 bits.
 */
export class KeyCache {
  readonly #records = new KnownRecords();
  readonly #bySecret = new KnownLists(this.#records, BY_SECRET);
  readonly #byKey = new KnownLists(this.#records, BY_KEY);
  readonly #maxRecords: number;
  /** Records that exist. */
  #end = 0;
  /** Records to be used again, in a list. */
  #free = NONE;
  /** The record that is next to go when all are in use. */
  #hand = 0;

  constructor(maxRecords: number) {
    this.#maxRecords = maxRecords;
  }

  get size(): number {
    return this.#bySecret.size;
  }

  /** The record of a secret that makes up the rest of a text, or NONE. */
  find(text: string, from: number): number {
    if (text.length !== from + SECRET_LENGTH) return NONE;
    let record = this.#bySecret.first(firstWord(text, from));
    while (record !== NONE && !this.#records.isOf(record, text, from)) record = this.#bySecret.next(record);
    return record;
  }

  keyId(record: number): number {
    return this.#records.keyId(record);
  }

  limits(record: number) {
    return this.#records.limits(record);
  }

  validUntil(record: number): number {
    return this.#records.validUntil(record);
  }

  /** At the bound another goes for it: the one learned longest ago, save that records of forgotten ones come first. */
  add(secret: string, opens: Opens): void {
    this.forget(secret);
    if (!fits(opens)) return;
    const record = this.#takeRecord();
    this.#records.write(record, secret, opens);
    this.#bySecret.add(record);
    this.#byKey.add(record);
  }

  forget(secret: string): void {
    const record = this.find(secret, 0);
    if (record !== NONE) this.#drop(record);
  }

  /** Forgets all secrets of a key. */
  forgetKey(keyId: number): void {
    let record = this.#byKey.first(keyId);
    while (record !== NONE) {
      const next = this.#byKey.next(record);
      if (this.#records.keyId(record) === keyId) this.#drop(record);
      record = next;
    }
  }

  #drop(record: number): void {
    this.#bySecret.remove(record);
    this.#byKey.remove(record);
    this.#records.setWord(record, BY_SECRET.next, this.#free + 1);
    this.#free = record;
  }

  #takeRecord(): number {
    if (this.#free === NONE && this.#end < this.#maxRecords) {
      this.#records.open(this.#end);
      return this.#end++;
    }
    if (this.#free === NONE) {
      this.#drop(this.#hand);
      this.#hand = (this.#hand + 1) % this.#maxRecords;
    }
    const record = this.#free;
    this.#free = this.#bySecret.next(record);
    return record;
  }
}

/** What a record has no room for is looked up in the key store each time; no key that we number comes near it. */
function fits({ keyId, limits }: Opens): boolean {
  return [keyId, limits.perMinute, limits.perDay].every((number) => number >>> 0 === number);
}

export { NONE };
