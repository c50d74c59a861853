import { describe, expect, spyOn, test } from "bun:test";
import type { SharedTables } from "../../src/store/sql/table-store.ts";
import { appendRows, upsertRows } from "../../src/store/sql/table-rows.ts";
import { PETS } from "../../src/store/sql/tables.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { SqliteClientStore } from "../../src/store/sqlite/client-store.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";
import { BY } from "../key-store-arguments.ts";
import { openStoreDatabase, temporaryDatabase } from "./sqlite-database.ts";

const newPet = (i: number) => ({ name: `pet ${i}`, categoryId: BigInt(i % 2), status: "available" }) as const;
const BEHIND = "SELECT (SELECT max(id) FROM pets) - recent_after AS behind FROM pet_revision";
const COUNT = "SELECT count(*) AS recent FROM pets WHERE is_recent IS NOT NULL";

test("pets enter the index of categories 1,024 at a time, and a page has those in it and the recent ones", async () => {
  using db = temporaryDatabase();
  const store = new SqliteClientStore(db.connection);
  const recent = () => Number(db.connection.get<{ recent: bigint }>(COUNT)?.recent);
  const idsOf = async (query: object) =>
    (await store.operatorPetStore.listPets({ limit: 5_000, ...query })).items.map(({ id }) => Number(id));
  const all = (count: number) => Array.from({ length: count }, (_, i) => i + 1).filter((id) => id % 2 === 0);
  await Promise.all(Array.from({ length: 1_000 }, (_, i) => store.createPet(newPet(i + 1), 0)));
  expect(recent()).toBe(1_000);
  expect(await idsOf({ categoryId: 0n })).toEqual(all(1_000));
  for (let i = 1_001; i <= 1_024; i++) await store.createPet(newPet(i), 0);
  expect(recent()).toBe(0);
  for (let i = 1_025; i <= 1_034; i++) await store.createPet(newPet(i), 0);
  // Operators add pets to the index at once, and change recent ones.
  await store.operatorPetStore.createPet({ ...newPet(0), status: "sold" }, BY);
  await store.operatorPetStore.updatePet(1_034n, { status: "sold" }, BY);
  expect(recent()).toBe(10);
  expect(await idsOf({ categoryId: 0n })).toEqual([...all(1_034), 1_035]);
  expect(await idsOf({ categoryId: 0n, after: 1_020n })).toEqual([
    1_022, 1_024, 1_026, 1_028, 1_030, 1_032, 1_034, 1_035,
  ]);
  expect(await idsOf({ categoryId: 0n, status: "sold" })).toEqual([1_034, 1_035]);
  await Promise.all(Array.from({ length: 1_013 }, () => store.createPet(newPet(0), 0)));
  expect(recent()).toBe(1_023);
  await store.createPet(newPet(0), 0);
  expect(recent()).toBe(0);
  await store.close();
});

test("a server puts the pets of other processes behind it into what a page reads from the index", async () => {
  using db = temporaryDatabase();
  const after = () =>
    Number(db.connection.get<{ after: bigint }>("SELECT recent_after AS after FROM pet_revision")?.after);
  const imported = openStoreDatabase(db.path);
  imported.run(`INSERT INTO pets (name, category_id) WITH RECURSIVE n (i) AS
    (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1023) SELECT 'Rex', 1 FROM n`);
  const store = new SqliteClientStore(db.connection);
  for (const [id, behind] of [
    [1_024, 0],
    [1_025, 1_025],
  ] as const) {
    await store.createPet(newPet(1), 0);
    store.indexPetsOfOtherProcesses();
    // A write that comes later is committed after the index.
    await store.updateOrder({ keyId: 1, id: 1n, status: "cancelled" }, 0);
    expect([db.count("pets"), after()]).toEqual([id, behind]);
  }
  const { items } = await store.operatorPetStore.listPets({ categoryId: 1n, limit: 5, after: 1_023n });
  expect(items.map(({ id }) => Number(id))).toEqual([1_024, 1_025]);
  imported.close();
  await store.close();
});

describe("a server", () => {
  useFakeTimers();

  test("looks every second for the pets of other processes, a command does not", async () => {
    using directory = disposableDirectory();
    using look = spyOn(SqliteClientStore.prototype, "indexPetsOfOtherProcesses");
    const path = directory.path("store.db");
    const command = openSqlite(path);
    const rescue = { to: directory.path("rescued.db"), onRescue() {}, onFailure() {} };
    const server = openSqlite(path, { rescue });
    const looks = async (ms: number) => {
      await advance(ms);
      return look.mock.calls.length;
    };
    expect([await looks(999), await looks(1), await looks(1_000)]).toEqual([1, 2, 3]);
    await server.close();
    expect(await looks(1_000)).toBe(3);
    await command.close();
  });
});

test("imported pets and those of a copy are in the index at once, also between recent ones", async () => {
  using db = temporaryDatabase();
  const store = new SqliteClientStore(db.connection);
  const behind = (connection = db.connection) => Number(connection.get<{ behind: bigint }>(BEHIND)?.behind);
  await using shared: SharedTables & AsyncDisposable = await sqliteTables(db.path).share();
  const append = (count: number) =>
    shared.write(() =>
      appendRows(
        shared,
        PETS,
        Array.from({ length: count }, () => ["Rex", 1n, "sold"]),
      ),
    );
  for (let i = 1; i <= 10; i++) {
    await store.createPet(newPet(1), 0);
    await append(500);
    expect(behind()).toBe(0);
  }
  await store.createPet(newPet(1), 0);
  await shared.write(() => upsertRows(shared, PETS, [[9_000n, "Rex", 1n, "sold"]]));
  await store.createPet(newPet(1), 0);
  expect([behind(), db.count("pets WHERE is_recent IS NOT NULL")]).toEqual([1, 1]);
  const { items } = await store.operatorPetStore.listPets({ categoryId: 1n, limit: 5, after: 5_009n });
  expect(items.map(({ id }) => Number(id))).toEqual([5_010, 5_011, 9_000, 9_001]);
  await store.close();

  const copy = `${db.path}-copy`;
  const tables = await sqliteTables(copy).create();
  await tables.insert(PETS, [[5_000n, "Rex", 1n, "sold"]]);
  await tables.complete({});
  await tables.publish({});
  await openSqlite(copy).close();
  const copied = openStoreDatabase(copy);
  expect(behind(copied)).toBe(0);
  copied.close();
});
