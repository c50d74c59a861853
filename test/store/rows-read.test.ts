import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { petPage } from "../../src/store/pages.ts";
import { SQLITE_DIALECT } from "../../src/store/sqlite/statements.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { insertPets, PET_QUERIES, PETS } from "../conformance/list-cost.ts";
import { PageCounter } from "./pages-read.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const directory = temporaryDirectory();
const path = directory.path("store.db");
await openSqlite(path).close();
{
  using database = new Database(path);
  const numbers = `(WITH RECURSIVE all_n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM all_n WHERE n < ${PETS})
    SELECT n FROM all_n)`;
  database.run(insertPets(numbers));
}
const counter = new PageCounter(path);
afterAll(() => {
  counter[Symbol.dispose]();
  directory[Symbol.dispose]();
});

test("a page of 5 pets reads fewer than 16 pages of the file, with every combination of filters", () => {
  const reads = PET_QUERIES.map((query) => ({ query, of: counter.pagesOf(petPage(query, SQLITE_DIALECT)) }));
  expect(reads.filter(({ of }) => of.pages >= 16)).toEqual([]);
  // The counter counts: six pets are on as many pages of the table.
  expect(Math.max(...reads.map(({ of }) => of.pages))).toBeGreaterThan(6);
});
