/** The first items in an order. Sorting all of them would take longer, and could not be interrupted. */
export class FirstItems<T> {
  /** In their order. */
  readonly items: T[] = [];

  constructor(
    private readonly limit: number,
    private readonly compare: (a: T, b: T) => number,
  ) {}

  add(item: T): void {
    const { items, limit, compare } = this;
    const last = items[limit - 1];
    if (last !== undefined && compare(item, last) >= 0) return;
    let low = 0;
    let high = items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = items[middle];
      if (other !== undefined && compare(other, item) <= 0) low = middle + 1;
      else high = middle;
    }
    items.splice(low, 0, item);
    if (items.length > limit) items.pop();
  }
}
