import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import { copyFileSync, statSync } from "node:fs";
import { Unavailable } from "../../src/api/errors.ts";
import type { StateChange } from "../../src/domain/ports/stores.ts";
import { disk } from "../../src/runtime/own-files.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { CommitQueue } from "../../src/store/sqlite/commit-queue.ts";
import { openForServerReads } from "../../src/store/sqlite/database-file.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/open-sqlite.ts";
import { MAX_BYTES } from "../../src/store/sqlite/write-ahead-log.ts";
import { AT, rex } from "../conformance/store-fixture.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { BY, storedSecret } from "../key-store-arguments.ts";
import { until } from "../timing.ts";

/** A disk whose syncs end when the test says so. */
function heldDisk() {
  const waiting: PromiseWithResolvers<void>[] = [];
  const spy = spyOn(disk, "syncContents").mockImplementation(() => {
    const sync = Promise.withResolvers<void>();
    waiting.push(sync);
    return sync.promise;
  });
  return {
    /** Resolves when a sync has begun. */
    begun: () => until(() => waiting.length > 0, 5_000),
    end: () => waiting.shift()?.resolve(),
    fail: () => waiting.shift()?.reject(new Error("EIO: i/o error, fdatasync")),
    get syncs() {
      return spy.mock.calls.length;
    },
    [Symbol.dispose]: () => spy.mockRestore(),
  };
}

async function serverStores(path: string, options: Parameters<typeof openSqlite>[1] = {}) {
  const stores = openSqlite(path, { server: {}, ...options });
  await stores.clientStore.createPet(rex, AT);
  await stores.clientStore.createPet({ ...rex, status: "available" }, AT);
  await stores.clientStore.placeOrder({ keyId: 1, petId: 2n }, AT);
  return stores;
}

const KEY = { name: "shop", plan: "free", createdAt: 0 } as const;

/** Everything that a server shows of its database. */
const shownBy = async ({ petJson, clientStore, operatorPetStore, keys, storedValues, audit }: SqliteStores) =>
  Bun.inspect([
    petJson.revisions,
    petJson.list({ limit: 9 }),
    petJson.list({ limit: 9, status: "available" }),
    petJson.list({ limit: 9, ids: [1n, 2n, 3n] }),
    [1, 2, 3].map((id) => petJson.get(id)),
    await clientStore.listOrders(1, { limit: 9 }),
    await clientStore.getOrder(1, 1n),
    await operatorPetStore.listPets({ limit: 9 }),
    await operatorPetStore.searchPets("e", { limit: 9 }),
    await keys.getKey(1),
    await keys.findCredential(storedSecret(1).hash),
    await keys.changesSince(0),
    await storedValues.readValues(),
    await audit.listAudit({ limit: 9 }),
  ]);

const WRITES: readonly (readonly [string, (stores: SqliteStores) => Promise<unknown>])[] = [
  ["a pet of a client", ({ clientStore }) => clientStore.createPet(rex, AT)],
  ["an order", ({ clientStore }) => clientStore.placeOrder({ keyId: 1, petId: 1n }, AT)],
  [
    "an order's end",
    ({ clientStore }) => clientStore.updateOrder({ keyId: 1, id: 1n, status: "completed" }, AT),
  ],
  ["a pet of an operator", ({ operatorPetStore }) => operatorPetStore.createPet(rex, BY)],
  [
    "a pet that an operator corrects",
    ({ operatorPetStore }) => operatorPetStore.updatePet(1n, { name: "Mia" }, BY),
  ],
  ["a key", ({ keys }) => keys.createKey(KEY, storedSecret(1), BY)],
  ["a setting", ({ storedValues }) => storedValues.saveValues({ url: "https://pets.example" })],
];

test.each(WRITES)("%s is shown when it is on the disk, and not before", async (_, write) => {
  using directory = disposableDirectory();
  const stores = await serverStores(directory.path("store.db"));
  // Caches have what is shown.
  const before = await shownBy(stores);
  using held = heldDisk();
  let isAcknowledged = false;
  const writing = write(stores).then(() => (isAcknowledged = true));
  await held.begun();
  expect(await shownBy(stores)).toBe(before);
  expect(await shownBy(stores)).toBe(before);
  expect(isAcknowledged).toBe(false);
  held.end();
  await writing;
  expect(await shownBy(stores)).not.toBe(before);
  await stores.close();
});

test("a read of an operator, in a thread, waits until what it has read is on the disk", async () => {
  using directory = disposableDirectory();
  const stores = await serverStores(directory.path("store.db"));
  using held = heldDisk();
  const writing = stores.clientStore.createPet(rex, AT);
  await held.begun();
  const order: string[] = [];
  const pet = await Promise.race([
    Promise.resolve(stores.operatorReads.operatorPetStore.getPet(3n)).then(() => order.push("read")),
    until(() => false, 300).catch(() => "waits"),
  ]);
  expect([pet, order]).toEqual(["waits", []]);
  held.end();
  await writing;
  await until(() => order.length > 0, 5_000);
  await stores.close();
});

test("what another process commits meanwhile is shown, and read anew, when the disk has what was before it", async () => {
  using directory = disposableDirectory();
  const path = directory.path("store.db");
  const { petJson, ...stores } = await serverStores(path);
  petJson.checkOtherProcesses();
  using held = heldDisk();
  const writing = stores.clientStore.createPet(rex, AT);
  await held.begun();
  using another = new Database(path);
  another.run("UPDATE pets SET name = 'Mia'");
  petJson.checkOtherProcesses();
  const cached = { ...petJson.revisions };
  expect(petJson.get(1)?.json).toContain(rex.name);
  held.end();
  await writing;
  expect(petJson.revisions.changes).toBeGreaterThan(cached.changes);
  expect(petJson.get(1)?.json).toContain("Mia");
  await stores.close();
});

test("what changes no row waits for no disk, and neither do counts", async () => {
  using directory = disposableDirectory();
  const { clientStore, operatorPetStore, serverReports, close } = await serverStores(
    directory.path("store.db"),
  );
  const request = { keyId: 1, idempotencyKey: "k", fingerprint: "f" };
  await clientStore.createPet(rex, AT, request);
  using held = heldDisk();
  expect(await clientStore.createPet(rex, AT, request)).toMatchObject({ id: 3n, replayed: true });
  expect(await clientStore.placeOrder({ keyId: 1, petId: 2n }, AT)).toMatchObject({
    code: "pet_not_available",
  });
  expect(await operatorPetStore.deletePet(99n, BY)).toMatchObject({ code: "pet_not_found" });
  await serverReports.report("a", "{}");
  expect(held.syncs).toBe(0);
  await close();
});

test("a write that fails beside others leaves nothing behind, and reads go on", async () => {
  using directory = disposableDirectory();
  const { clientStore, petJson, keys, close } = await serverStores(directory.path("store.db"));
  await keys.createKey(KEY, storedSecret(1), BY);
  const before = { ...petJson.revisions };
  const [pet, key] = await Promise.allSettled([
    clientStore.createPet(rex, AT),
    keys.createKey(KEY, storedSecret(1), BY),
  ]);
  expect([pet.status, key.status]).toEqual(["fulfilled", "rejected"]);
  expect(petJson.revisions).toEqual({ ...before, changesAndAdditions: before.changesAndAdditions + 1 });
  expect(petJson.get(3)).toBeDefined();
  await close();
});

describe("an error of a sync", () => {
  test("fails everything that is not acknowledged, shows nothing of it, and leaves the database as it is", async () => {
    using directory = disposableDirectory();
    const path = directory.path("store.db");
    const [failures, changes]: [Error[], StateChange[]] = [[], []];
    const stores = await serverStores(path, {
      onSyncFailure: (error) => failures.push(error),
      onStateChange: (change) => changes.push(change),
    });
    const before = await shownBy(stores);
    const writtenBefore = [path, `${path}-wal`].map((file) => statSync(file).size);
    using held = heldDisk();
    const create = () => stores.clientStore.createPet(rex, AT);
    const both = Promise.allSettled([create(), held.begun().then(create)]);
    await held.begun();
    held.fail();
    const reason = /the disk did not confirm what was written \(EIO: i\/o error, fdatasync\)/;
    for (const outcome of await both) {
      expect(outcome.status === "rejected" && outcome.reason).toBeInstanceOf(Unavailable);
      expect(outcome.status === "rejected" && String(outcome.reason)).toMatch(reason);
    }
    await expect(create()).rejects.toThrow(reason);
    const ofThread = Promise.resolve(stores.operatorReads.operatorPetStore.getPet(3n));
    await expect(ofThread).rejects.toThrow("the disk did not confirm");
    expect(await shownBy(stores)).toBe(before);
    expect([failures.length, held.syncs]).toEqual([1, 1]);
    expect(changes.map(({ state }) => state)).toEqual(["down"]);

    await stores.close();
    // Nothing was copied from the log to the database.
    copyFileSync(path, directory.path("copy.db"));
    expect(statSync(path).size).toBe(writtenBefore[0] ?? 0);
    expect(statSync(`${path}-wal`).size).toBeGreaterThan(writtenBefore[1] ?? 0);
  });
});

test("a sync that takes 2 s is reported, and its end", async () => {
  let now = 0;
  const looks: (() => void)[] = [];
  const sync = Promise.withResolvers<void>();
  const changes: StateChange[] = [];
  let rowsWritten = 0;
  const queue = new CommitQueue(
    {
      connection: {
        transaction: (work) => work(),
        get rowsWritten() {
          return rowsWritten++;
        },
      },
      disk: {
        reads: { pin() {}, unpin() {} },
        log: { makeRoom: () => undefined, sync: () => sync.promise },
      },
      atEnd() {},
    },
    {
      onStateChange: (change) => changes.push(change),
      scheduler: {
        ...scheduler,
        now: () => now,
        setInterval(work) {
          looks.push(work);
          return { close() {}, unref() {} };
        },
      },
    },
  );
  const written = queue.submit(() => 1);
  for (let turn = 0; turn < 5; turn++) await scheduler.yield();
  const statesAt = (ms: number) => {
    now = ms;
    for (const look of looks) look();
    return changes.map(({ state }) => state);
  };
  expect([statesAt(1_999), statesAt(2_000), statesAt(30_000)]).toEqual([[], ["down"], ["down"]]);
  expect(changes).toMatchObject([{ cause: { message: "the disk has confirmed no write for 2 s" } }]);
  sync.resolve();
  expect(await written).toBe(1);
  expect(statesAt(30_000)).toEqual(["down", "up"]);
});

test("a pinned read that fails lets none read what is not on the disk yet", () => {
  using directory = disposableDirectory();
  const path = directory.path("a.db");
  using writer = new Database(path, { create: true });
  writer.run("PRAGMA journal_mode = WAL");
  writer.run("CREATE TABLE pets (id INTEGER PRIMARY KEY)");
  const reads = openForServerReads(path, 100);
  const count = () => reads.get<{ count: bigint }>("SELECT count(*) AS count FROM pets")?.count;
  reads.pin();
  writer.run("INSERT INTO pets DEFAULT VALUES");
  expect(count()).toBe(0n);
  // An error of the disk ends the transaction, too.
  reads.exec("ROLLBACK");
  expect(count).toThrow("a read has failed");
  expect(() => reads.rows({ sql: "SELECT 1", values: [], isVaried: true })).toThrow("a read has failed");
  reads.unpin();
  expect(count()).toBe(1n);
  reads.close();
});

test("the log starts anew at 16 MB while writes never pause, and nothing is lost", async () => {
  using directory = disposableDirectory();
  const path = directory.path("store.db");
  const { clientStore, petJson, logBytes, close } = await serverStores(path);
  // Each takes 4 KB.
  const name = "🐕".repeat(1_024);
  const lengths: number[] = [];
  let written = 0;
  const write = async () => {
    while (written < 12_000) {
      written++;
      await clientStore.createPet({ name, categoryId: 1n }, AT);
      lengths.push(logBytes?.() ?? 0);
    }
  };
  await Promise.all(Array.from({ length: 500 }, write));
  const restarts = lengths.filter((length, i) => length < (lengths[i - 1] ?? 0)).length;
  expect(restarts).toBeGreaterThan(1);
  expect(Math.max(...lengths)).toBeLessThan(1.25 * MAX_BYTES);
  expect(petJson.get(12_002)?.json).toContain(name);
  await close();
  using copy = new Database(path);
  expect(copy.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  expect(copy.query("SELECT count(*) AS count FROM pets").get()).toEqual({ count: 12_002 });
}, 60_000);
