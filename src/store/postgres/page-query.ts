import type { SQL } from "bun";
import type { Page, PageQuery } from "../../domain/ports.ts";
import { pageOf } from "../rows.ts";
import type { ConnectionPool } from "./connections/connection-pool.ts";

/**
 * The SQL of a page in the order of `id`. The parameters are the identifier to continue after, the limit, the scope if
 * there is one, and in `byStatus` the status.
 *
 * An index finds the first row of every page, so the last page costs what the first one does. Written as
 * `status = $3 AND id > $1`, a condition lets PostgreSQL walk all pets by `id` and filter by status. Where the old pets
 * are sold and the available ones come last, that reads the whole table. `(status, id) > ($3, $1) AND status <= $3`
 * means the same, and the order by (status, id) leaves it the index on (status, id) only.
 */
export interface PageQueries {
  readonly all: string;
  readonly byStatus: string;
}

/** `Scope`: what restricts every page, such as the key of orders. */
export class PageReader<Row, T, Scope extends readonly unknown[] = []> {
  constructor(
    private readonly pool: ConnectionPool,
    private readonly queries: PageQueries,
    private readonly itemOf: (row: Row) => T,
  ) {}

  async read({ after = 0n, status, limit }: PageQuery<string>, ...scope: Scope): Promise<Page<T>> {
    const { all, byStatus } = this.queries;
    const select =
      status === undefined
        ? (sql: SQL) => sql.unsafe<Row[]>(all, [after, limit + 1, ...scope])
        : (sql: SQL) => sql.unsafe<Row[]>(byStatus, [after, limit + 1, ...scope, status]);
    return pageOf(await this.pool.query(select), limit, this.itemOf);
  }
}
