import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { fillAllStatements, SQLITE_NUMBERS } from "../../bench/skewed-rows.ts";
import { petPage } from "../../src/store/pet-and-order-lists.ts";
import { SQLITE_DIALECT } from "../../src/store/sqlite/dialect.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import {
  FEW_ROWS,
  MANY_ROWS,
  measuredLists,
  type MeasuredPage,
  mostWithMany,
  NOW,
  petQueries,
  rowCounts,
} from "../conformance/list-cost.ts";
import { PageCounter } from "./pages-read.ts";
import { disposableDirectory } from "../disposable-directory.ts";

const directory = disposableDirectory();
const pathOf = (rows: number, every = 1) => directory.path(`${rows}-${every}.db`);
/** The most pets that follow the last that the index of categories has. */
const MOST_RECENT = 1_024;
const few = await counterOf(FEW_ROWS);
const many = await counterOf(MANY_ROWS);
const scattered = await counterOf(FEW_ROWS, 22);
afterAll(() => {
  for (const each of [few, many, scattered, directory]) each[Symbol.dispose]();
});

/** Counts the pages of a database with so many rows, and of its last pets one in `every` recent. */
async function counterOf(rows: number, every = 1): Promise<PageCounter> {
  const path = pathOf(rows, every);
  await openSqlite(path).close();
  using database = new Database(path);
  database.run("PRAGMA foreign_keys = OFF");
  database.run("PRAGMA synchronous = OFF");
  for (const statement of fillAllStatements(rowCounts(rows), SQLITE_NUMBERS, NOW)) database.run(statement);
  // The last pets are recent, as those that a server has added, or some of them, if others have added pets.
  database.run("UPDATE pets SET is_recent = 1 WHERE id > ? AND id % ? = 0", [rows - MOST_RECENT, every]);
  database.run("UPDATE pet_revision SET recent_after = ?", [rows - MOST_RECENT]);
  database.close();
  return new PageCounter(path);
}

test.each([
  ["with all of the last pets recent", many],
  ["with some of the last pets recent", scattered],
])(
  "a page of 5 pets reads fewer than 24 pages of the file, with every combination of filters, %s",
  (_, counter) => {
    const reads = petQueries(5).map((query) => ({
      query,
      of: counter.pagesOf(petPage(query, SQLITE_DIALECT)),
    }));
    expect(reads.filter(({ of }) => of.pages >= 24)).toEqual([]);
    // The counter counts.
    expect(Math.max(...reads.map(({ of }) => of.pages))).toBeGreaterThan(3);
  },
);

/** The pages of the file that the statements of a page read. */
const readBy = (counter: PageCounter, { statements }: MeasuredPage) =>
  statements.reduce((sum, statement) => sum + counter.pagesOf(statement).pages, 0);

const lists = (size: "small" | "full") =>
  measuredLists(SQLITE_DIALECT, size).map((list) => [list.name, list] as const);

test.each(lists("full"))("%s reads at most the rows that the table of operations allows", (_, list) => {
  // Each row can be in a page of its own, in an index and in the table.
  const most = 2 * list.maxRowsRead + 24;
  const reads = list.pages.map((page) => ({ name: page.name, pages: readBy(many, page) }));
  expect(reads.filter(({ pages }) => pages > most)).toEqual([]);
});

test.each(lists("small"))(
  "%s reads no more with four times as many rows, whatever the filters",
  (_, list) => {
    const reads = list.pages.map((page) => ({
      name: page.name,
      before: readBy(few, page),
      after: readBy(many, page),
    }));
    const worst = Math.max(...reads.map(({ before }) => before));
    expect(reads.filter(({ before, after }) => after > mostWithMany(list, before, worst))).toEqual([]);
  },
);

test("a page that ends after the 5,000 rows that it may read says where the next one continues", async () => {
  (await counterOf(32_000))[Symbol.dispose]();
  const stores = openSqlite(pathOf(32_000));
  const { operatorPetStore, audit } = stores;
  // The only order of pet 1 that is placed is the newest of 24,000, and those of key 7 are none.
  const newest = { petId: 1n, status: "placed", limit: 5 } as const;
  expect(await operatorPetStore.listOrders(newest)).toMatchObject({
    items: [{ id: 24_000n }],
    hasMore: true,
    readTo: 19_001n,
  });
  const positions: bigint[] = [];
  for (let before: bigint | undefined; ;) {
    const page = await operatorPetStore.listOrders({ petId: 1n, keyId: 7, before, limit: 5 });
    expect(page.items).toEqual([]);
    if (page.readTo === undefined) break;
    positions.push((before = page.readTo));
  }
  expect(positions).toEqual([19_001n, 14_001n, 9_001n, 4_001n]);
  const ofTarget = { target: { kind: "key", id: 1n }, action: "key.revoked", limit: 5 } as const;
  expect(await audit.listAudit(ofTarget)).toMatchObject({
    items: [{ id: 30_000n }],
    hasMore: true,
    readTo: 26_945n,
  });
  const following = { after: 100n, action: "key.revoked", limit: 5 } as const;
  expect(await audit.listAudit(following)).toMatchObject({ items: [], hasMore: true, readTo: 5_100n });
  expect(await audit.listAudit({ ...following, after: 5_100n })).toMatchObject({
    items: [{ id: 6_000n }],
    hasMore: true,
    readTo: 10_100n,
  });
  await stores.close();
});
