import { Database, type SQLQueryBindings } from "bun:sqlite";
import { bytesRead } from "../../trials/harness/processes.ts";
import type { Statement } from "../../src/store/sql/steps.ts";

/** The size of a page of the file, which is the unit of what SQLite reads. */
const PAGE_BYTES = 4_096;

/**
 * Counts the pages that a statement reads, in the copy of a database that nobody else has open. Unlike its plan and its
 * time, that shows whether it reads rows that it does not return. The cache has room for few pages, so that a page
 * which is needed again later is read again. Linux counts the bytes that this process reads from files.
 */
export class PageCounter {
  readonly #database: Database;

  constructor(path: string) {
    this.#database = new Database(path, { safeIntegers: true, strict: true });
    // All pages are in the file, and none in a log or in memory.
    this.#database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    this.#database.run("PRAGMA cache_size = 32");
    this.#database.run("PRAGMA mmap_size = 0");
  }

  pagesOf({ sql, values }: Statement): { readonly pages: number; readonly rows: number } {
    // Preparing a statement reads the schema once.
    using statement = this.#database.prepare<unknown, SQLQueryBindings[]>(sql);
    statement.get(...values);
    const before = bytesRead(process.pid);
    const rows = statement.all(...values).length;
    return { pages: Math.floor((bytesRead(process.pid) - before) / PAGE_BYTES), rows };
  }

  [Symbol.dispose](): void {
    this.#database.close(true);
  }
}
