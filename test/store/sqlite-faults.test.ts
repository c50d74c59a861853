import { describe, expect, spyOn, test } from "bun:test";
import type { ApiKey, NewKey } from "../../src/domain/api-keys.ts";
import type { StateChange } from "../../src/domain/ports/stores.ts";
import type { IdempotentRequest } from "../../src/domain/ports/pets-and-orders.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { SqlKeyStore } from "../../src/store/api-keys.ts";
import { rowsOf } from "../../src/store/sql/steps.ts";
import type { SharedTables } from "../../src/store/sql/table-store.ts";
import { SqliteClientStore } from "../../src/store/sqlite/client-store.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/open-sqlite.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import { DAY_MS } from "../conformance/store-fixture.ts";
import { temporaryDatabase, whileLocked } from "./sqlite-database.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { until } from "../timing.ts";
import { allKeys, BY, storedSecret } from "../key-store-arguments.ts";

const request: IdempotentRequest = { keyId: 1, idempotencyKey: "k", fingerprint: "f" };
const numbered = (n: number): IdempotentRequest => ({ ...request, idempotencyKey: `k${n}` });
const KEY: NewKey = { name: "shop", plan: "free", createdAt: 0 };
const big = { name: "x".repeat(1000), categoryId: 1n };

describe("a full disk", () => {
  test("makes every write of the batch Unavailable and commits none, and later writes succeed", async () => {
    using db = temporaryDatabase();
    const changes: StateChange[] = [];
    const store = new SqliteClientStore(db.connection, { onStateChange: (change) => changes.push(change) });
    const first = await store.createPet(big, 0);
    expect(first).toMatchObject({ id: 1n });
    const pages = db.connection.value("PRAGMA page_count");
    db.connection.run(`PRAGMA max_page_count = ${String(pages)}`);

    const writes = Array.from({ length: 50 }, (_, i) =>
      store.createPet(big, 0, i === 0 ? request : undefined),
    );
    for (const each of await Promise.allSettled(writes)) {
      expect(each).toMatchObject({
        status: "rejected",
        reason: { name: "Unavailable", cause: { code: "SQLITE_FULL" } },
      });
    }
    expect([db.count("pets"), db.count("attempts")]).toEqual([1, 0]);
    expect((await store.operatorPetStore.listPets({ limit: 9 })).items).toHaveLength(1);
    expect(db.connection.value("PRAGMA integrity_check")).toBe("ok");

    db.connection.run("PRAGMA max_page_count = 1000000");
    const retried = await store.createPet(big, 0, request);
    expect(retried).toMatchObject({ id: 2n, replayed: false });
    expect(changes).toEqual([
      { state: "down", cause: expect.objectContaining({ name: "Unavailable" }) },
      { state: "up", afterMs: expect.any(Number) },
    ]);
    await store.close();
  });
});

test("a change of a key that cannot get the write lock of another process is Unavailable, and changes nothing", async () => {
  using db = temporaryDatabase();
  const keys = new SqlKeyStore(new SqliteClientStore(db.connection, { maxBusyMs: 0 }).databaseFor());
  await whileLocked(db.path, async () => {
    await expect(keys.createKey(KEY, storedSecret(0), BY)).rejects.toMatchObject({ name: "Unavailable" });
  });
  expect(await allKeys(keys)).toEqual([]);
  expect((await keys.createKey(KEY, storedSecret(0), BY)).id).toBe(1);
});

test("a change of a key waits for another process, and does not block the event loop meanwhile", async () => {
  using directory = disposableDirectory();
  const { keys, close } = openSqlite(directory.path("store.db"));
  const { promise: created, resolve } = Promise.withResolvers<ApiKey>();
  await whileLocked(directory.path("store.db"), async () => {
    void keys.createKey(KEY, storedSecret(1), BY).then(resolve);
    for (let turn = 0; turn < 5; turn++) await new Promise((wake) => setTimeout(wake, 1));
  });
  expect((await created).id).toBe(1);
  await close();
});

test.each([
  ["an operator", 5_000, 2, ({ keys }: SqliteStores) => keys.createKey(KEY, storedSecret(1), BY)],
  ["a server about itself", 1_000, 2, ({ serverReports }: SqliteStores) => serverReports.report("a", "")],
  ["an import", 60_000, 1, (_: SqliteStores, tables: SharedTables) => tables.write(() => rowsOf("SELECT 1"))],
])(
  "a write of %s is given up after %i ms behind the lock of another process, after pauses of up to twice %i ms",
  async (_, maxMs, pauseMs, write) => {
    using directory = disposableDirectory();
    const path = directory.path("store.db");
    const stores = openSqlite(path);
    await using shared: SharedTables & AsyncDisposable = await sqliteTables(path).share();
    using attempts = spyOn(Connection.prototype, "transaction");
    let now = 7_000;
    using spies = new DisposableStack();
    spies.use(spyOn(performance, "now").mockImplementation(() => now));
    spies.use(spyOn(scheduler, "random").mockReturnValue(0.5));
    const pauses = spies.use(spyOn(scheduler, "sleep"));
    await whileLocked(path, async () => {
      const outcomes: unknown[] = [];
      const writing = write(stores, shared).then(
        (result) => outcomes.push(result),
        (error: unknown) => outcomes.push(error),
      );
      const attempt = (count: number) => until(() => attempts.mock.calls.length >= count, 10_000);
      await attempt(1);
      now += maxMs - 1;
      await attempt(attempts.mock.calls.length + 2);
      expect(outcomes).toEqual([]);
      now += 1;
      await writing;
      expect(outcomes).toMatchObject([{ name: "Unavailable" }]);
      expect(pauses.mock.calls.at(-1)).toEqual([pauseMs]);
    });
    await stores.close();
  },
);

describe("idempotent requests", () => {
  test("a request that failed can be sent again", async () => {
    using db = temporaryDatabase();
    const onStateChange = () => expect.unreachable();
    const store = new SqliteClientStore(db.connection, { maxBusyMs: 0, onStateChange });
    await whileLocked(db.path, async () => {
      await expect(store.createPet(big, 0, request)).rejects.toMatchObject({ name: "Unavailable" });
    });
    expect(await store.createPet(big, 0, request)).toMatchObject({ replayed: false });
    await store.close();
  });

  test("after a restart, what operators change before the first write of a client deletes no record", async () => {
    using db = temporaryDatabase();
    const before = new SqliteClientStore(db.connection);
    await before.createPet(big, 2 * DAY_MS, request);
    await before.close();
    const stores = openSqlite(db.path, { server: {} });
    await stores.operatorPetStore.updatePet(1n, { name: "Rex" }, BY);
    const again = await stores.clientStore.createPet(big, 2 * DAY_MS + 1, request);
    expect(again).toMatchObject({ replayed: true });
    await stores.close();
  });

  test("expired records are deleted by later writes: 16 in each transaction and 2 for each write", async () => {
    using db = temporaryDatabase();
    const store = new SqliteClientStore(db.connection);
    await Promise.all(Array.from({ length: 60 }, (_, n) => store.createPet(big, n, numbered(n))));
    await store.createPet(big, DAY_MS - 1);
    expect(db.count("attempts")).toBe(60);

    await Promise.all([1, 2].map(() => store.createPet(big, DAY_MS + 49)));
    expect(db.count("attempts")).toBe(60 - 20);
    for (let i = 0; i < 5; i++) await store.createPet(big, DAY_MS + 49);
    expect(db.count("attempts")).toBe(10);
    expect(await store.createPet(big, DAY_MS + 49, numbered(50))).toMatchObject({ replayed: true });
    await store.close();
  });
});

describe("while the clock is not trusted", () => {
  test("records of before are found and kept, and those of then are deleted in their turn", async () => {
    using db = temporaryDatabase();
    let trustedNow = 1_000;
    const store = new SqliteClientStore(db.connection, { retentionNow: () => trustedNow });
    await store.createPet(big, 1_000, numbered(1));
    const wrong = 500 * DAY_MS;
    expect(await store.createPet(big, wrong, numbered(1))).toMatchObject({ replayed: true });
    await store.createPet(big, wrong, numbered(2));
    expect(await store.createPet(big, 2_000, numbered(2))).toMatchObject({ replayed: true });
    expect(db.count("attempts")).toBe(2);

    trustedNow = 2 * DAY_MS;
    await store.createPet(big, trustedNow);
    await store.createPet(big, trustedNow);
    expect(db.count("attempts")).toBe(0);
    await store.close();
  });
});
