import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const RANGE = 2_048;
const HIGHEST = 2n ** 63n - 1n;
/** At the borders of ranges, with ranges between them that have no pet. */
const IDS = [1, 2, RANGE - 1, RANGE, RANGE + 1, 3 * RANGE, 3 * RANGE + 1, 1_000 * RANGE - 1]
  .map(BigInt)
  .concat(HIGHEST - BigInt(RANGE), HIGHEST - 1n, HIGHEST);
const categoryOf = (id: bigint) => id % 2n;
const statusOf = (id: bigint) => (id % 3n === 0n ? "sold" : "available");

test("pages of a category have its pets in order, also where identifiers are far apart", async () => {
  using directory = temporaryDirectory();
  await openSqlite(directory.path("store.db")).close();
  {
    using database = new Database(directory.path("store.db"), { safeIntegers: true, strict: true });
    const insert = database.query("INSERT INTO pets (id, name, category_id, status) VALUES (?, 'Rex', ?, ?)");
    for (const id of IDS.toReversed()) insert.run(id, categoryOf(id), statusOf(id));
  }
  const stores = openSqlite(directory.path("store.db"));
  for (const categoryId of [0n, 1n, 7n])
    for (const status of [undefined, "sold"] as const)
      for (const limit of [1, 2, 100])
        for (const after of [undefined, ...IDS]) {
          const all = IDS.filter((id) => categoryOf(id) === categoryId && id > (after ?? 0n)).filter(
            (id) => status === undefined || statusOf(id) === status,
          );
          const query = { categoryId, limit, ...(status && { status }), ...(after && { after }) };
          const { items, hasMore } = await stores.store.listPets(query);
          expect(items.map(({ id }) => id)).toEqual(all.slice(0, limit));
          expect(hasMore).toBe(all.length > limit);
          const page = stores.petJson.list(query);
          expect(page instanceof Promise ? undefined : page.last).toBe(all.slice(0, limit).at(-1));
        }
  await stores.close();
});
