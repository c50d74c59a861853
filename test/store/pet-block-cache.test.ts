import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { disposableDirectory } from "../disposable-directory.ts";

/** A store with so many pets of the same name, inserted behind the port. */
async function storeWith(pets: number, { name, path }: { name: string; path: string }) {
  await openSqlite(path).close();
  using database = new Database(path);
  database.run(
    `INSERT INTO pets (name, category_id)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${pets}) SELECT ?, i FROM n`,
    [name],
  );
  return openSqlite(path);
}

test("a block that lacks a pet is read from the table, and only its absence is cached", async () => {
  using directory = disposableDirectory();
  const path = directory.path("store.db");
  await (await storeWith(130, { name: "Rex", path })).close();
  const database = new Database(path);
  database.run("DELETE FROM pets WHERE id = 30");
  database.close();

  const { petJson, close } = openSqlite(path);
  for (let i = 0; i < 4; i++) {
    expect(petJson.list({ after: 20n, limit: 20 }).last).toBe(41n);
    expect(petJson.get(30)).toBeUndefined();
    const pet = petJson.get(31)?.json;
    expect(pet).toStartWith('{"id":31,');
    const empty = { json: "[]", last: undefined, hasMore: false };
    expect(petJson.list({ ids: [30n], limit: 1 })).toEqual(empty);
    expect(petJson.list({ ids: [31n], limit: 1 })).toEqual({ json: `[${pet}]`, last: 31n, hasMore: false });
  }
  expect(petJson.cachedBytes).toBe(400);
  await close();
});

test("the last block is cached when it is complete, at the second request for it", async () => {
  using directory = disposableDirectory();
  const { clientStore, petJson, close } = await storeWith(128, {
    name: "Rex",
    path: directory.path("store.db"),
  });
  const bytes = [];
  for (let i = 0; i < 3; i++) {
    const { json, ...rest } = petJson.list({ after: 64n, limit: 64 });
    expect(rest).toEqual({ last: 128n, hasMore: false });
    // The text without its brackets, an ETag of 24 bytes for each pet, and what holds them.
    bytes.push(petJson.cachedBytes - (i > 0 ? json.length - 2 + 64 * 24 : 0));
  }
  expect(bytes).toEqual([0, 800, 800]);
  expect(petJson.cacheStatistics).toMatchObject({ hits: 1, misses: 2 });
  await clientStore.placeOrder({ keyId: 1, petId: 100n }, 0);
  expect(petJson.get(100)?.json).toContain('"status":"pending"');
  await close();
});

test("the cache holds at most 16 MiB", async () => {
  using directory = disposableDirectory();
  const options = { name: "x".repeat(1_000), path: directory.path("store.db") };
  const { petJson, close } = await storeWith(20_000, options);
  for (let after = 0; after < 20_000; after += 64) {
    for (let times = 0; times < 2; times++) petJson.list({ after: BigInt(after), limit: 64 });
  }
  expect(petJson.cachedBytes).toBeLessThanOrEqual(16_777_216);
  expect(petJson.cachedBytes).toBeGreaterThan(16_600_000);
  await close();
});

test("pets requested once, in any number, do not enter the cache", async () => {
  using directory = disposableDirectory();
  const { petJson, close } = await storeWith(20_000, { name: "Rex", path: directory.path("store.db") });
  for (let id = 1; id <= 20_000; id += 64) petJson.get(id);
  // So many others came in between that this is no repetition.
  petJson.get(1);
  expect(petJson.cachedBytes).toBe(0);
  petJson.get(19_905);
  expect(petJson.cachedBytes).toBeGreaterThan(0);
  await close();
});
