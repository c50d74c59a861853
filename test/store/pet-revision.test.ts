import { expect, test } from "bun:test";
import { SqliteStore } from "../../src/store/sqlite/store.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const OPTIONS = {
  migrations: SQLITE_MIGRATIONS,
  synchronous: "FULL",
  cacheKiB: 1024,
  busyTimeoutMs: 0,
} as const;
const by = { actor: { kind: "command line" }, at: 0 } as const;

test("after a check, the caches show the corrections, deletions and orders of another process", async () => {
  using folder = temporaryFolder();
  const path = folder.path("store.db");
  const [server, command] = [0, 1].map(() => new SqliteStore(openDatabase(path, OPTIONS)));
  if (!server || !command) throw new Error("no stores");
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
  using folder = temporaryFolder();
  const store = new SqliteStore(openDatabase(folder.path("store.db"), OPTIONS));
  await store.createPet({ name: "Rex", categoryId: 1n }, 0);
  const isUnchanged = store.petJson.changes.watch({ from: 1n });
  await store.corrections.deletePet(9n, by);
  await store.corrections.updatePet(1n, { name: "Rex" }, by);
  store.petRevision.check();
  expect(isUnchanged()).toBe(true);
  await store.close();
});
