import type { By, KnownRecords } from "./key-records.ts";

export const NONE = -1;

/** Half-full buckets: a look-up reads 1.25 records on average, for 8 bytes a record. */
const BUCKETS_PER_RECORD = 2;
const FIRST_BUCKETS = 1024;
const PAGE_SHIFT = 14;
const PAGE_MASK = (1 << PAGE_SHIFT) - 1;

/** Differs in every process, so that nobody outside can tell what shares a bucket. */
const SEED = crypto.getRandomValues(new Int32Array(1))[0] ?? 0;

/**
 * Records by one of their words, through linear hashing: each newcomer splits two buckets, so there is no moment at
 * which everything moves. (A Map of a million strings stops the world for 110 ms when it grows.) The records of a
 * bucket are a list, each naming the next.
 */
export class KnownLists {
  readonly #records: KnownRecords;
  readonly #by: By;
  /** The first record of each bucket, plus one. */
  readonly #heads: Uint32Array[] = [new Uint32Array(1 << PAGE_SHIFT)];
  #buckets = FIRST_BUCKETS;
  /** The greatest power of two that is not above the number of buckets. */
  #base = FIRST_BUCKETS;
  #size = 0;

  constructor(records: KnownRecords, by: By) {
    this.#records = records;
    this.#by = by;
  }

  get size(): number {
    return this.#size;
  }

  /** The first record in the list of all that have this word; some in it have another. */
  first(word: number): number {
    return this.#head(this.#bucketOf(word));
  }

  next(record: number): number {
    return this.#records.word(record, this.#by.next) - 1;
  }

  add(record: number): void {
    this.#link(record);
    this.#size++;
    while (this.#buckets < this.#size * BUCKETS_PER_RECORD) this.#split();
  }

  remove(record: number): void {
    const bucket = this.#bucketOf(this.#records.word(record, this.#by.word));
    const after = this.next(record);
    let before = this.#head(bucket);
    if (before === record) this.#setHead(bucket, after);
    else {
      while (this.next(before) !== record) before = this.next(before);
      this.#records.setWord(before, this.#by.next, after + 1);
    }
    this.#size--;
  }

  #link(record: number): void {
    const bucket = this.#bucketOf(this.#records.word(record, this.#by.word));
    this.#records.setWord(record, this.#by.next, this.#head(bucket) + 1);
    this.#setHead(bucket, record);
  }

  /** Adds one bucket, and moves what belongs in it there from the only other one where that can be. */
  #split(): void {
    const old = this.#buckets - this.#base;
    if ((this.#buckets & PAGE_MASK) === 0) this.#heads.push(new Uint32Array(1 << PAGE_SHIFT));
    this.#buckets++;
    let record = this.#head(old);
    this.#setHead(old, NONE);
    while (record !== NONE) {
      const next = this.next(record);
      this.#link(record);
      record = next;
    }
    if (this.#buckets === 2 * this.#base) this.#base *= 2;
  }

  #bucketOf(word: number): number {
    const bucket = mixed(word) & (2 * this.#base - 1);
    return bucket < this.#buckets ? bucket : bucket - this.#base;
  }

  #head(bucket: number): number {
    return (this.#heads[bucket >>> PAGE_SHIFT]?.[bucket & PAGE_MASK] ?? 0) - 1;
  }

  #setHead(bucket: number, record: number): void {
    const page = this.#heads[bucket >>> PAGE_SHIFT];
    if (page) page[bucket & PAGE_MASK] = record + 1;
  }
}

/** Buckets are chosen by the lowest bits, while characters and numbers differ in others too. */
function mixed(word: number): number {
  let hash = Math.imul(word ^ SEED, 0x21f0aaad);
  hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97);
  return hash ^ (hash >>> 15);
}
