import { expect, test } from "bun:test";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { SqliteClientStore } from "../../src/store/sqlite/client-store.ts";
import { openStoreDatabase, temporaryDatabase } from "./sqlite-database.ts";

const by = { actor: { kind: "command line" }, at: 0 } as const;

test("after a check, the caches show the changes, deletions and orders of another process", async () => {
  using db = temporaryDatabase();
  const server = new SqliteClientStore(db.connection);
  const command = new SqliteClientStore(openStoreDatabase(db.path));
  const { petJson } = server;
  await Promise.all(
    Array.from({ length: 130 }, (_, i) => server.createPet({ name: `pet ${i + 1}`, categoryId: 1n }, 0)),
  );
  await server.placeOrder({ keyId: 1, petId: 2n }, 0);
  const page = () => petJson.list({ limit: 64 });
  const warmUp = () => {
    for (let i = 0; i < 3; i++) page();
  };

  warmUp();
  await command.operatorPetStore.updatePet(1n, { name: "Rex" }, by);
  const before = { ...petJson.revisions };
  petJson.checkOtherProcesses();
  expect(petJson.revisions.changes).toBeGreaterThan(before.changes);
  expect(petJson.revisions.changesAndAdditions).toBeGreaterThan(before.changesAndAdditions);
  expect(page().json).toStartWith('[{"id":1,"name":"Rex",');

  warmUp();
  await command.operatorPetStore.updateOrder(1n, "completed", by);
  petJson.checkOtherProcesses();
  expect(page().json).toContain('{"id":2,"name":"pet 2","categoryId":1,"status":"sold"');

  warmUp();
  await command.operatorPetStore.deletePet(3n, by);
  petJson.checkOtherProcesses();
  expect(page()).toMatchObject({ last: 65n, hasMore: true });
  expect(petJson.get(3)).toBeUndefined();

  // Without a change, what is cached stays.
  const stays = { ...petJson.revisions };
  petJson.checkOtherProcesses();
  expect(petJson.revisions).toEqual(stays);
  await Promise.all([server.close(), command.close()]);
});

test("what a server itself stores besides pets leaves the caches as they are", async () => {
  using db = temporaryDatabase();
  const stores = openSqlite(db.path);
  const { petJson } = stores;
  await stores.clientStore.createPet({ name: "Rex", categoryId: 1n }, 0);
  const before = { ...petJson.revisions };
  const secret = { hash: "0".repeat(64), hint: "" };
  await stores.keys.createKey({ name: "a", plan: "pro", createdAt: 0 }, secret, by);
  await stores.serverReports.report("one", "a report");
  petJson.checkOtherProcesses();
  expect(petJson.revisions).toEqual(before);
  await stores.close();
});

test("a rejected change invalidates nothing", async () => {
  using db = temporaryDatabase();
  const store = new SqliteClientStore(db.connection);
  await store.createPet({ name: "Rex", categoryId: 1n }, 0);
  const before = { ...store.petJson.revisions };
  await store.operatorPetStore.deletePet(9n, by);
  await store.operatorPetStore.updatePet(1n, { name: "Rex" }, by);
  store.petJson.checkOtherProcesses();
  expect(store.petJson.revisions).toEqual(before);
  await store.close();
});

test("a new pet makes the last page stale, an order all pages", async () => {
  using db = temporaryDatabase();
  const store = new SqliteClientStore(db.connection);
  const { revisions } = store.petJson;
  const counted = async (work: Promise<unknown>) => {
    const before = { ...revisions };
    await work;
    return Object.keys(before).filter(
      (name) => revisions[name as keyof typeof revisions] > before[name as keyof typeof revisions],
    );
  };
  expect(await counted(store.createPet({ name: "Rex", categoryId: 1n }, 0))).toEqual(["changesAndAdditions"]);
  const both = ["changes", "changesAndAdditions"];
  expect(await counted(store.placeOrder({ keyId: 1, petId: 1n }, 0))).toEqual(both);
  expect(await counted(store.updateOrder({ keyId: 1, id: 1n, status: "cancelled" }, 0))).toEqual(both);
  await store.close();
});
