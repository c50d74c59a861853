import type { Statement } from "bun:sqlite";
import type { Page, PageQuery } from "../../domain/ports.ts";
import { pageOf } from "../rows.ts";
import type { Connection } from "./connection.ts";
import { asFault } from "./sqlite-errors.ts";

/**
 * Pages of a table by `id`, each found by a look-up in an index and not by counting, so that depth costs nothing.
 *
 * `LIMIT +?` and not `LIMIT ?`: SQLite plans by the value of a bare limit, and so compiles the statement anew at
 * every call, which takes as long as reading twenty rows does (22 µs a page against 13).
 */
export class Listing<Row, Status extends string> {
  readonly #any: Statement<Row, [bigint, number]>;
  readonly #withStatus: Statement<Row, [string, bigint, number]>;

  /** `select` reaches as far as the name of the table, which has an index on (status, id). */
  constructor(connection: Connection, select: string) {
    this.#any = connection.prepare(`${select} WHERE id > ? ORDER BY id LIMIT +?`);
    this.#withStatus = connection.prepare(`${select} WHERE status = ? AND id > ? ORDER BY id LIMIT +?`);
  }

  page<T>({ after = 0n, status, limit }: PageQuery<Status>, entry: (row: Row) => T): Page<T> {
    try {
      // One more than asked for tells whether there is more.
      const rows =
        status === undefined
          ? this.#any.all(after, limit + 1)
          : this.#withStatus.all(status, after, limit + 1);
      return pageOf(rows, limit, entry);
    } catch (error) {
      throw asFault(error);
    }
  }
}
