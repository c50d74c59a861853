import { describe, expect, test } from "bun:test";
import { Unavailable } from "../../../src/api/errors.ts";
import type { StateChange } from "../../../src/domain/ports/stores.ts";
import { postgresTables } from "../../../src/store/postgres/table-store.ts";
import { auditStoreConformance } from "../../conformance/audit-store.ts";
import { keyListConformance } from "../../conformance/key-list.ts";
import { policyStoreConformance } from "../../conformance/policy-store.ts";
import { testsOn } from "../../conformance/store-fixture.ts";
import { usageHistoryConformance } from "../../conformance/usage-history.ts";
import { createMigrated, emptyDatabase, type TestDatabase } from "./postgres-database.ts";
import { until } from "../../timing.ts";

describe("stores for reads, on connections of their own", () => {
  const testOnStores = testsOn(async () => {
    const database = await emptyDatabase();
    const stores = await database.open();
    return {
      ...stores,
      ...stores.operatorReads,
      tables: postgresTables({ url: database.url, schema: "public" }),
      another: () => database.open(),
      reopen: async () => stores,
      close: () => database[Symbol.asyncDispose](),
    };
  });
  keyListConformance(testOnStores);
  auditStoreConformance(testOnStores);
  policyStoreConformance(testOnStores);
  usageHistoryConformance(testOnStores);
});

/** Makes reads of the audit trail wait until the lock is released. */
async function lockAudit({ sql }: TestDatabase) {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: locked, resolve: onLocked } = Promise.withResolvers<void>();
  const transaction = sql.begin(async (tx) => {
    await tx`LOCK TABLE audit IN ACCESS EXCLUSIVE MODE`;
    onLocked();
    await released;
  });
  await locked;
  return {
    async release() {
      release();
      await transaction;
    },
  };
}

test("while ten slow reads of operators run or wait, clients read and write, and operators change keys", async () => {
  await using database = await emptyDatabase();
  const { operatorReads, keys, petJson, clientStore } = await database.open({ operatorReadMs: 60_000 });
  const lock = await lockAudit(database);
  const slow = Array.from({ length: 10 }, () => operatorReads.audit.listAudit({ limit: 1 }));
  await clientStore.createPet({ name: "Rex", categoryId: 1n }, 1);
  expect((await petJson.list({ limit: 1 })).json).toContain("Rex");
  expect(await keys.getKey(1)).toBeUndefined();
  await lock.release();
  expect(await Promise.all(slow)).toEqual(slow.map(() => ({ items: [], hasMore: false })));
});

test("a read that takes too long is Unavailable, the database is not down, and the next read succeeds", async () => {
  await using database = await emptyDatabase();
  const changes: StateChange[] = [];
  const onStateChange = (change: StateChange) => changes.push(change);
  const { operatorReads } = await database.open({ operatorReadMs: 50, onStateChange });
  const { audit } = operatorReads;
  const lock = await lockAudit(database);
  const slow = await Promise.allSettled([1, 2, 3].map((limit) => audit.listAudit({ limit })));
  for (const each of slow)
    expect(each).toMatchObject({ status: "rejected", reason: expect.any(Unavailable) });
  await lock.release();
  expect(changes).toEqual([]);
  expect(await operatorReads.operators.listOperators()).toEqual([]);
});

test("the connections open with the first read and close when no other follows", async () => {
  await using database = await createMigrated();
  const { operatorReads } = await database.open({ operatorReadIdleSeconds: 1 });
  const { sql } = database;
  /** The other connections of the server have run other statements. */
  const count = async () => {
    const [row] = await sql<[{ open: number }]>`SELECT count(*)::int AS open FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE '%FROM operators%' AND pid <> pg_backend_pid()`;
    return row.open;
  };
  const read = () => operatorReads.operators.listOperators();
  expect(await count()).toBe(0);
  await Promise.all([read(), read(), read()]);
  expect(await count()).toBeWithin(1, 3);
  await until(async () => (await count()) === 0, 10_000);
  // The next read opens one again.
  expect(await read()).toEqual([]);
  expect(await count()).toBeWithin(1, 3);
});
