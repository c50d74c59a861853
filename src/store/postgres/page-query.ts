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
 * Each finds its rows by a look-up in an index and not by counting, so that the depth of a page costs nothing.
 *
 * The one by status says `status = $3 AND id > $1` in a roundabout way. Said plainly, PostgreSQL may go through all
 * pets by `id` and leave out those of another status, since on average that is cheap; where the old ones are all
 * sold and the available ones come last, it reads the whole table. This order only the index on (status, id) can give.
 */
export function pageQueries({ table, columns }: Table): { any: string; withStatus: string } {
  const select = `SELECT ${columns} FROM ${table}`;
  return {
    any: `${select} WHERE id > $1 ORDER BY id LIMIT $2`,
    withStatus: `${select} WHERE (status, id) > ($3, $1) AND status <= $3 ORDER BY status, id LIMIT $2`,
  };
}

export class Listing<Row, T> {
  readonly #any: string;
  readonly #withStatus: string;

  constructor(
    private readonly pool: ConnectionPool,
    table: Table,
    private readonly entry: (row: Row) => T,
  ) {
    const { any, withStatus } = pageQueries(table);
    this.#any = any;
    this.#withStatus = withStatus;
  }

  async page({ after = 0n, status, limit }: PageQuery<string>): Promise<Page<T>> {
    // One more than asked for tells whether there is more.
    const query =
      status === undefined
        ? (sql: SQL) => sql.unsafe<Row[]>(this.#any, [after, limit + 1])
        : (sql: SQL) => sql.unsafe<Row[]>(this.#withStatus, [after, limit + 1, status]);
    return pageOf(await this.pool.run(query), limit, this.entry);
  }
}
