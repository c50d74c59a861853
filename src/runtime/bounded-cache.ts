export interface Sized {
  /** About how much memory the value takes, including its key and its entry in the map. */
  readonly bytes: number;
}

/** Counts the requests to a cache since the start. */
export class CacheStatistics {
  hits = 0;
  misses = 0;
}

/** The memory of a string: one byte a character, or two if any character is outside ASCII. */
export function stringBytes(text: string): number {
  return NON_ASCII.test(text) ? 2 * text.length : text.length;
}

const NON_ASCII = /[^\0-\x7f]/;

/** A map bounded by the bytes of its values. It evicts the oldest entries first. */
export class BoundedCache<Key, Value extends Sized> {
  readonly #values = new Map<Key, Value>();
  #bytes = 0;

  constructor(private readonly maxBytes: number) {}

  get bytes(): number {
    return this.#bytes;
  }

  get(key: Key): Value | undefined {
    return this.#values.get(key);
  }

  set(key: Key, value: Value): void {
    this.delete(key);
    if (value.bytes > this.maxBytes) return;
    for (const oldest of this.#values.keys()) {
      if (this.#bytes + value.bytes <= this.maxBytes) break;
      this.delete(oldest);
    }
    this.#values.set(key, value);
    this.#bytes += value.bytes;
  }

  delete(key: Key): void {
    this.#bytes -= this.#values.get(key)?.bytes ?? 0;
    this.#values.delete(key);
  }
}

/**
 * Finds what is requested a second time, for a cache: most of what is requested once would only take memory. The filter
 * remembers some of the last requests, as numbers, one in each slot.
 *
 * `bun bench/store.ts`: with the filter, a random pet out of a million takes 8.4 µs; without it, 35 µs.
 */
export class RepeatFilter {
  /** The numbers plus 1; 0 marks a free slot. */
  readonly #recent: Float64Array;

  constructor(slots: number) {
    this.#recent = new Float64Array(slots);
  }

  /** Returns whether this number was requested before, and remembers it. */
  isRepeat(number: number): boolean {
    const slot = number % this.#recent.length;
    if (this.#recent[slot] === number + 1) return true;
    this.#recent[slot] = number + 1;
    return false;
  }
}
