import { expect, test } from "bun:test";
import type { IdRange } from "../../src/petstore/pet-json.ts";
import { ChangeCounters } from "../../src/store/sqlite/pet-changes.ts";
import { SqliteStore } from "../../src/store/sqlite/store.ts";
import { openStoreDatabase, temporaryDatabase } from "./sqlite-database.ts";

const by = { actor: { kind: "command line" }, at: 0 } as const;

test("after a check, the caches show the corrections, deletions and orders of another process", async () => {
  using db = temporaryDatabase();
  const server = new SqliteStore(db.connection);
  const command = new SqliteStore(openStoreDatabase(db.path));
  const { petJson, petRevision } = server;
  await Promise.all(
    Array.from({ length: 130 }, (_, i) => server.createPet({ name: `pet ${i + 1}`, categoryId: 1n }, 0)),
  );
  await server.placeOrder({ keyId: 1, petId: 2n }, 0);
  const page = () => petJson.list({ limit: 64 });
  const warmUp = () => {
    for (let i = 0; i < 3; i++) page();
  };

  warmUp();
  await command.corrections.updatePet(1n, { name: "Rex" }, by);
  const isUnchanged = petJson.changes.watch({ from: 1n, to: 64n });
  expect(isUnchanged()).toBe(true);
  petRevision.check();
  expect(isUnchanged()).toBe(false);
  expect(page().json).toStartWith('[{"id":1,"name":"Rex",');

  warmUp();
  await command.corrections.updateOrder(1n, "completed", by);
  petRevision.check();
  expect(page().json).toContain('{"id":2,"name":"pet 2","categoryId":1,"status":"sold"}');

  warmUp();
  await command.corrections.deletePet(3n, by);
  petRevision.check();
  expect(page()).toMatchObject({ last: 65n, hasMore: true });
  expect(petJson.get(3)).toBeUndefined();

  // Without a change, what is cached stays.
  const stays = petJson.changes.watch({ from: 1n });
  petRevision.check();
  expect(stays()).toBe(true);
  await Promise.all([server.close(), command.close()]);
});

test("a rejected correction invalidates nothing", async () => {
  using db = temporaryDatabase();
  const store = new SqliteStore(db.connection);
  await store.createPet({ name: "Rex", categoryId: 1n }, 0);
  const isUnchanged = store.petJson.changes.watch({ from: 1n });
  await store.corrections.deletePet(9n, by);
  await store.corrections.updatePet(1n, { name: "Rex" }, by);
  store.petRevision.check();
  expect(isUnchanged()).toBe(true);
  await store.close();
});

test.each<[change: string, range: IdRange, make: (counters: ChangeCounters) => void, isUnchanged: boolean]>([
  ["a pet before its blocks", { from: 65n, to: 192n }, (counters) => counters.petChanged(64n), true],
  ["a pet after its blocks", { from: 65n, to: 192n }, (counters) => counters.petChanged(193n), true],
  ["a pet in its blocks", { from: 65n, to: 192n }, (counters) => counters.petChanged(192n), false],
  ["a new pet", { from: 65n, to: 192n }, (counters) => counters.petAdded(), true],
  ["a new pet, without an end", { from: 1_000n }, (counters) => counters.petAdded(), false],
  ["a later pet, without an end", { from: 1_000n }, (counters) => counters.petChanged(5_000n), false],
  ["any pet, of 17 blocks", { from: 1n, to: 1_088n }, (counters) => counters.petChanged(99_999n), true],
  ["any pet, of 18 blocks", { from: 1n, to: 1_089n }, (counters) => counters.petChanged(99_999n), false],
  ["a pet 4,096 blocks later", { from: 1n, to: 64n }, (counters) => counters.petChanged(262_145n), false],
  ["a deletion", { from: 262_081n, to: 262_144n }, (counters) => counters.everythingChanged(), false],
])("a range and a change of %s", (_, range, make, isUnchanged) => {
  const counters = new ChangeCounters();
  const watched = counters.watch(range);
  make(counters);
  expect(watched()).toBe(isUnchanged);
});
