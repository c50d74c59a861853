export const NONE = -1;

const SHARDS = 256;
const FIRST_CAPACITY = 8;

/** Differs in every process: nobody outside can choose texts that collide. */
const SEED = crypto.getRandomValues(new Int32Array(1))[0] ?? 0;

/** FNV-1a from a secret start. */
export function hashText(text: string): number {
  let hash = SEED;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return mixBits(hash);
}

export function hashInt32(value: number): number {
  return mixBits(value ^ SEED);
}

/** Every bit of the result depends on all bits of the hash: the index uses the highest and the lowest ones. */
function mixBits(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return mixed ^ (mixed >>> 15);
}

/**
 * Finds the number of a record by the hash of its key: open addressing with linear probing, in typed arrays. The owner
 * stores the records with their keys, and says whether a record has a key.
 *
 * The highest bits of a hash choose one of 256 tables. Each grows on its own, so that no request waits until a million
 * entries have moved.
 *
 * A Map is simpler, and too large for a million subjects: a Map from text to record number, in 1,024 shards, takes 266
 * bytes for an address and 279 for an API key, records included, where this takes 152 and 92; and the garbage collector
 * needs 67 ms and more to trace it. `bun bench/limiter.ts` measures memory, time and pauses of this.
 */
export class HashIndex<Key> {
  readonly #hasKey: (record: number, key: Key) => boolean;
  /** Pairs of a hash and a record number + 1; 0 marks a free place. */
  readonly #shards = Array.from({ length: SHARDS }, () => new Int32Array(2 * FIRST_CAPACITY));
  readonly #sizes = new Uint32Array(SHARDS);

  constructor(hasKey: (record: number, key: Key) => boolean) {
    this.#hasKey = hasKey;
  }

  /** The number of the record with this key, or NONE. */
  find(hash: number, key: Key): number {
    const shard = this.#shardOf(hash);
    const last = shard.length - 2;
    for (let at = (hash << 1) & last; ; at = (at + 2) & last) {
      const record = (shard[at + 1] ?? 0) - 1;
      if (record === NONE || (shard[at] === hash && this.#hasKey(record, key))) return record;
    }
  }

  /** Adds a record whose key is not in the index. */
  add(hash: number, record: number): void {
    const number = hash >>> 24;
    const size = (this.#sizes[number] ?? 0) + 1;
    this.#sizes[number] = size;
    if (8 * size > 3 * this.#shardOf(hash).length) this.#grow(number);
    insert(this.#shardOf(hash), hash, record);
  }

  remove(hash: number, record: number): void {
    const shard = this.#shardOf(hash);
    const last = shard.length - 2;
    let free = (hash << 1) & last;
    while (shard[free + 1] !== record + 1) {
      if (shard[free + 1] === 0) throw new RangeError(`record ${record} is not in the index`);
      free = (free + 2) & last;
    }
    // Entries behind the free place move into it, unless that is in front of the place where their search begins.
    for (let at = (free + 2) & last; shard[at + 1] !== 0; at = (at + 2) & last) {
      const start = ((shard[at] ?? 0) << 1) & last;
      if (((at - start) & last) < ((at - free) & last)) continue;
      shard.copyWithin(free, at, at + 2);
      free = at;
    }
    shard[free + 1] = 0;
    const number = hash >>> 24;
    this.#sizes[number] = (this.#sizes[number] ?? 0) - 1;
  }

  #shardOf(hash: number): Int32Array {
    const shard = this.#shards[hash >>> 24];
    if (shard === undefined) throw new RangeError("a hash has 32 bits");
    return shard;
  }

  #grow(number: number): void {
    const old = this.#shards[number] ?? new Int32Array();
    const shard = new Int32Array(2 * old.length);
    for (let at = 0; at < old.length; at += 2) {
      const entry = old[at + 1] ?? 0;
      if (entry !== 0) insert(shard, old[at] ?? 0, entry - 1);
    }
    this.#shards[number] = shard;
  }
}

function insert(shard: Int32Array, hash: number, record: number): void {
  const last = shard.length - 2;
  let at = (hash << 1) & last;
  while (shard[at + 1] !== 0) at = (at + 2) & last;
  shard[at] = hash;
  shard[at + 1] = record + 1;
}
