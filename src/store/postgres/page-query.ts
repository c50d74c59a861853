import type { SQL } from "bun";
import type { Page, PageQuery } from "../../domain/ports.ts";
import { pageOf } from "../rows.ts";
import type { ConnectionPool } from "./connection-pool.ts";

export interface Table {
  /** Has an index on (status, id). */
  readonly table: string;
  readonly columns: string;
}

/**
 * The SQL of a page in the order of `id`. An index look-up finds the first row, so the last page costs what the first
 * one does.
 *
 * `byStatus` means `status = $3 AND id > $1`. Written like that, PostgreSQL may walk all pets by `id` and filter by
 * status. Where the old pets are sold and the available ones come last, that reads the whole table. The order by
 * (status, id) leaves it the index on (status, id) only.
 */
export function pageQueries({ table, columns }: Table): { all: string; byStatus: string } {
  const select = `SELECT ${columns} FROM ${table}`;
  return {
    all: `${select} WHERE id > $1 ORDER BY id LIMIT $2`,
    byStatus: `${select} WHERE (status, id) > ($3, $1) AND status <= $3 ORDER BY status, id LIMIT $2`,
  };
}

export class PageReader<Row, T> {
  readonly #queries: ReturnType<typeof pageQueries>;

  constructor(
    private readonly pool: ConnectionPool,
    table: Table,
    private readonly itemOf: (row: Row) => T,
  ) {
    this.#queries = pageQueries(table);
  }

  async read({ after = 0n, status, limit }: PageQuery<string>): Promise<Page<T>> {
    const { all, byStatus } = this.#queries;
    const select =
      status === undefined
        ? (sql: SQL) => sql.unsafe<Row[]>(all, [after, limit + 1])
        : (sql: SQL) => sql.unsafe<Row[]>(byStatus, [after, limit + 1, status]);
    return pageOf(await this.pool.query(select), limit, this.itemOf);
  }
}
