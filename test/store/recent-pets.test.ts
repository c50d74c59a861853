import { expect, test } from "bun:test";
import { SqliteStore } from "../../src/store/sqlite/store.ts";
import { BY } from "../key-store-arguments.ts";
import { openStoreDatabase, temporaryDatabase } from "./sqlite-database.ts";

const newPet = (i: number) => ({ name: `pet ${i}`, categoryId: BigInt(i % 2), status: "available" }) as const;
const COUNT = "SELECT count(*) AS recent FROM pets WHERE is_recent IS NOT NULL";

test("pets enter the index of categories 1,024 at a time, and a page has those in it and the recent ones", async () => {
  using db = temporaryDatabase();
  const store = new SqliteStore(db.connection);
  const recent = () => Number(db.connection.get<{ recent: bigint }>(COUNT)?.recent);
  const idsOf = async (query: object) =>
    (await store.listPets({ limit: 5_000, ...query })).items.map(({ id }) => Number(id));
  const all = (count: number) => Array.from({ length: count }, (_, i) => i + 1).filter((id) => id % 2 === 0);
  await Promise.all(Array.from({ length: 1_000 }, (_, i) => store.createPet(newPet(i + 1), 0)));
  expect(recent()).toBe(1_000);
  expect(await idsOf({ categoryId: 0n })).toEqual(all(1_000));
  for (let i = 1_001; i <= 1_024; i++) await store.createPet(newPet(i), 0);
  expect(recent()).toBe(0);
  for (let i = 1_025; i <= 1_034; i++) await store.createPet(newPet(i), 0);
  // Operators add pets to the index at once, and change recent ones.
  await store.inventory.createPet({ ...newPet(0), status: "sold" }, BY);
  await store.inventory.updatePet(1_034n, { status: "sold" }, BY);
  expect(recent()).toBe(10);
  expect(await idsOf({ categoryId: 0n })).toEqual([...all(1_034), 1_035]);
  expect(await idsOf({ categoryId: 0n, after: 1_020n })).toEqual([
    1_022, 1_024, 1_026, 1_028, 1_030, 1_032, 1_034, 1_035,
  ]);
  expect(await idsOf({ categoryId: 0n, status: "sold" })).toEqual([1_034, 1_035]);
  await store.close();
});

test("a server puts the pets of other processes behind it into what a page reads from the index", async () => {
  using db = temporaryDatabase();
  const after = () =>
    Number(db.connection.get<{ after: bigint }>("SELECT recent_after AS after FROM pet_revision")?.after);
  const imported = openStoreDatabase(db.path);
  imported.run(`INSERT INTO pets (name, category_id) WITH RECURSIVE n (i) AS
    (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT 'Rex', 1 FROM n`);
  const store = new SqliteStore(db.connection);
  store.indexForeignPets();
  await store.createPet(newPet(1), 0);
  expect(after()).toBeGreaterThanOrEqual(3_000);
  const { items } = await store.listPets({ categoryId: 1n, limit: 5, after: 2_998n });
  expect(items.map(({ id }) => Number(id))).toEqual([2_999, 3_000, 3_001]);
  imported.close();
  await store.close();
});
