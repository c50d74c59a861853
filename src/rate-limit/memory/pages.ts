/**
 * Records in a page. Adding a page of the greatest records (half a megabyte) takes well under a millisecond, and
 * what is never written in it never takes up memory: the runtime gets it zeroed from the system, which hands it out
 * on first use.
 */
const SHIFT = 12;
const MASK = (1 << SHIFT) - 1;

/**
 * Numbered records of one size, in memory that the collector does not trace. It grows by a page at a time, so
 * growing moves nothing and no request waits for it.
 */
export class Pages {
  readonly #recordBytes: number;
  readonly #pages: (DataView | undefined)[] = [];

  constructor(recordBytes: number) {
    this.#recordBytes = recordBytes;
  }

  /** Makes the record exist; new ones are all zeros. */
  open(index: number): void {
    this.#pages[index >>> SHIFT] ??= new DataView(new ArrayBuffer(this.#recordBytes << SHIFT));
  }

  isOpen(index: number): boolean {
    return this.#pages[index >>> SHIFT] !== undefined;
  }

  page(index: number): DataView {
    const page = this.#pages[index >>> SHIFT];
    if (page === undefined) throw new RangeError(`record ${index} does not exist`);
    return page;
  }

  /** Where in its page the record begins. */
  offset(index: number): number {
    return (index & MASK) * this.#recordBytes;
  }
}
