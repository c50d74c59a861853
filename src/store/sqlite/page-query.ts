import type { SQLQueryBindings, Statement } from "bun:sqlite";
import type { Page, PageQuery } from "../../domain/ports.ts";
import { pageOf } from "../rows.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./sqlite-errors.ts";

interface PageReaderOptions<Row, T> {
  /** Ends with the name of the table. */
  readonly select: string;
  /** A condition that every row meets, such as `key_id = ?`. The table has an index on (scope, status, id). */
  readonly scope?: string;
  readonly itemOf: (row: Row) => T;
}

/**
 * Reads pages of a table in the order of `id`. An index look-up finds the first row, so the last page costs what the
 * first one does.
 *
 * `LIMIT +?` instead of `LIMIT ?`: SQLite plans by the value of a bare limit, and so compiles the statement again at
 * every call (`bun bench/store.ts`: 25 µs a page instead of 14).
 */
export class PageReader<Row, T, Scope extends SQLQueryBindings[] = []> {
  readonly #select: Statement<Row, [...Scope, bigint, number]>;
  readonly #selectByStatus: Statement<Row, [...Scope, string, bigint, number]>;
  readonly #itemOf: (row: Row) => T;

  constructor(connection: Connection, { select, scope, itemOf }: PageReaderOptions<Row, T>) {
    const where = `${select} WHERE${scope === undefined ? "" : ` ${scope} AND`}`;
    this.#select = connection.prepare(`${where} id > ? ORDER BY id LIMIT +?`);
    this.#selectByStatus = connection.prepare(`${where} status = ? AND id > ? ORDER BY id LIMIT +?`);
    this.#itemOf = itemOf;
  }

  /** `scope` has the values of the scope's parameters. */
  read({ after = 0n, status, limit }: PageQuery<string>, ...scope: Scope): Page<T> {
    return translateErrors(() => {
      const rows =
        status === undefined
          ? this.#select.all(...scope, after, limit + 1)
          : this.#selectByStatus.all(...scope, status, after, limit + 1);
      return pageOf(rows, limit, this.#itemOf);
    });
  }
}
