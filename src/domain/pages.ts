export interface PageQuery {
  /** The identifier of the last item of the page before. */
  readonly after?: bigint | undefined;
  readonly limit: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Whether another item matches the query after the last one; with `readTo`, whether one may. */
  readonly hasMore: boolean;
  /** The last row that was read, if the page ends there although it has room: a page reads a bounded number of rows. */
  readonly readTo?: bigint;
}

export interface PageJson {
  /** A JSON array of the items. */
  readonly json: string;
  /** The identifier of the last item; undefined on an empty page. */
  readonly last: bigint | undefined;
  readonly hasMore: boolean;
}

/** The page that ends with the limit. Whoever reads one item more than that knows whether another page follows. */
export function pageOf<T>(items: readonly T[], limit: number): Page<T> {
  return { items: items.slice(0, limit), hasMore: items.length > limit };
}

export function encodePage<T extends { id: bigint }>(
  { items, hasMore }: Page<T>,
  encode: (item: T) => string,
): PageJson {
  return { json: `[${items.map(encode).join(",")}]`, last: items.at(-1)?.id, hasMore };
}
