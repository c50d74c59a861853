import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { disposableDirectory } from "../disposable-directory.ts";

const RANGE = 2_048;
const HIGHEST = 2n ** 63n - 1n;
/** Far apart, with runs of each status. */
const IDS = [1, 2, 3, 4, 5, RANGE - 1, RANGE, RANGE + 1, 3 * RANGE, 3 * RANGE + 1, 1_000 * RANGE - 1]
  .map(BigInt)
  .concat(HIGHEST - BigInt(RANGE), HIGHEST - 1n, HIGHEST);
const categoryOf = (id: bigint) => id % 2n;
const STATUSES = ["sold", "available", undefined, "pending"] as const;
const statusOf = (id: bigint) => STATUSES[Number((id / 2n) % 4n)];

async function storeWithPets(path: string) {
  await openSqlite(path).close();
  using database = new Database(path, { safeIntegers: true, strict: true });
  const insert = database.query("INSERT INTO pets (id, name, category_id, status) VALUES (?, 'Rex', ?, ?)");
  for (const id of IDS.toReversed()) insert.run(id, categoryOf(id), statusOf(id) ?? null);
}

test("pages of a category have its pets in order, whatever their status and wherever their identifiers are", async () => {
  using directory = disposableDirectory();
  await storeWithPets(directory.path("store.db"));
  const stores = openSqlite(directory.path("store.db"));
  for (const categoryId of [0n, 1n, 7n])
    for (const status of [undefined, "sold"] as const)
      for (const limit of [1, 2, 5, 100])
        for (const after of [undefined, ...IDS]) {
          const all = IDS.filter((id) => categoryOf(id) === categoryId && id > (after ?? 0n)).filter(
            (id) => status === undefined || statusOf(id) === status,
          );
          const query = { categoryId, limit, ...(status && { status }), ...(after && { after }) };
          const { items, hasMore } = await stores.operatorPetStore.listPets(query);
          expect(items.map(({ id }) => id)).toEqual(all.slice(0, limit));
          expect(hasMore).toBe(all.length > limit);
          const page = stores.petJson.list(query);
          expect(page instanceof Promise ? undefined : page.last).toBe(all.slice(0, limit).at(-1));
        }
  await stores.close();
});
