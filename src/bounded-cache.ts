/** Something that can be kept, and about how much memory it takes up, its key and its place included. */
export interface Sized {
  readonly bytes: number;
}

/** What a text takes up: a byte a character, or two for all of them as soon as one is not ASCII. */
export function bytesOf(text: string): number {
  return NON_ASCII.test(text) ? 2 * text.length : text.length;
}

const NON_ASCII = /[^\0-\x7f]/;

/** A map that holds so many bytes and no more: what was put in first goes first. */
export class BoundedCache<Key, Value extends Sized> {
  readonly #values = new Map<Key, Value>();
  #bytes = 0;

  constructor(private readonly maxBytes: number) {}

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
 * Tells what comes back from what comes once: keeping the latter would only push out what is wanted. It knows a few of
 * the last, by a number each; one that comes back after many others counts as new.
 */
export class AdmissionFilter {
  readonly #seen: Float64Array;

  constructor(places: number) {
    this.#seen = new Float64Array(places).fill(-1);
  }

  /** Whether this number was seen before; it is from now on. */
  knows(number: number): boolean {
    const place = number % this.#seen.length;
    if (this.#seen[place] === number) return true;
    this.#seen[place] = number;
    return false;
  }
}
