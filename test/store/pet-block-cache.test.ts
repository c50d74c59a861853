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
    expect(petJson.get(31)?.json).toStartWith('{"id":31,');
  }
  expect(petJson.cachedBytes).toBe(400);
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
  expect(petJson.cachedBytes).toBe(0);
  petJson.get(19_905);
  expect(petJson.cachedBytes).toBeGreaterThan(0);
  await close();
});
