/** Pets 1 to 64 are the first block. */
export const BLOCK_SIZE = 64;
const COUNTERS = 4_096;
/** Longer spans are not worth looking at block by block. */
const MAX_BLOCKS = 16n;

/**
 * Counts changes of pets by blocks of identifiers. Counters only grow, so a sum that is the same means that each
 * of them is. Blocks share counters, so a change may seem to touch a range that it did not, never the other way round.
 */
export class ChangeCounters {
  readonly #changed = new Float64Array(COUNTERS);
  #changedAnywhere = 0;
  #added = 0;

  /** How many pets were added; the same number means none in between. */
  get added(): number {
    return this.#added;
  }

  petAdded(): void {
    this.#added++;
  }

  petChanged(id: bigint): void {
    this.#changedAnywhere++;
    const counter = counterOf(blockOf(id));
    this.#changed[counter] = (this.#changed[counter] ?? 0) + 1;
  }

  /** How many changes one block has seen; the same number means none in between. */
  inBlock(number: number): number {
    return this.#changed[number % COUNTERS] ?? 0;
  }

  watch({ from, to }: { readonly from: bigint; readonly to?: bigint }): () => boolean {
    const stamp = this.#stamp(from, to);
    const before = stamp();
    return () => stamp() === before;
  }

  #stamp(from: bigint, to: bigint | undefined): () => number {
    if (to === undefined) return () => this.#changedAnywhere + this.#added;
    const first = blockOf(from);
    const last = blockOf(to);
    if (last - first > MAX_BLOCKS) return () => this.#changedAnywhere;
    const counters: number[] = [];
    for (let block = first; block <= last; block++) counters.push(counterOf(block));
    const [only] = counters;
    if (counters.length === 1 && only !== undefined) return () => this.#changed[only] ?? 0;
    return () => counters.reduce((sum, counter) => sum + (this.#changed[counter] ?? 0), 0);
  }
}

function blockOf(id: bigint): bigint {
  return (id - 1n) / BigInt(BLOCK_SIZE);
}

function counterOf(block: bigint): number {
  return Number(block % BigInt(COUNTERS));
}
