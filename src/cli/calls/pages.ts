import { ADMIN_PAGE_LIMIT } from "../../operator/operations.ts";
import { Failure } from "../command.ts";

interface ListPage {
  readonly items: readonly unknown[];
  readonly nextCursor?: string | null;
}

interface ReadPages<P extends ListPage> {
  /** The number of items in all. */
  readonly limit: number;
  readonly read: (page: { readonly limit: number; readonly cursor: string | undefined }) => Promise<P>;
  readonly start?: string | undefined;
  /** The most items of a page. */
  readonly pageLimit?: number;
}

/** Whether other items follow those of a page. */
export const hasMoreAfter = ({ nextCursor }: ListPage) => Boolean(nextCursor);

/** The pages of a list, up to a number of items. */
export async function* pagesOf<P extends ListPage>(list: ReadPages<P>) {
  const { limit, read, start, pageLimit = ADMIN_PAGE_LIMIT.max } = list;
  let left = limit;
  for (let cursor = start; ;) {
    const page = await read({ limit: Math.min(left, pageLimit), cursor });
    const { items, nextCursor } = page;
    left -= items.length;
    yield page;
    if (!nextCursor || left <= 0) return;
    if (nextCursor === cursor) throw new Failure("the server responds with the same page again");
    cursor = nextCursor;
  }
}

/** The first items of all pages. */
export async function firstItems<P extends ListPage>(
  limit: number,
  read: ReadPages<P>["read"],
): Promise<readonly P["items"][number][]> {
  const items: P["items"][number][] = [];
  for await (const page of pagesOf({ limit, read })) items.push(...page.items);
  return items;
}
