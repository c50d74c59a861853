import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { Overloaded, Unavailable } from "../../src/api/errors.ts";
import { OperatorReadQueue } from "../../src/store/sql/operator-read-queue.ts";
import { DatabaseThread } from "../../src/store/sqlite/database-thread.ts";
import { OperatorReadThread } from "../../src/store/sqlite/operator-read-thread.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import { rowsOf } from "../../src/store/sql/steps.ts";
import { auditStoreConformance } from "../conformance/audit-store.ts";
import { keyListConformance } from "../conformance/key-list.ts";
import { policyStoreConformance } from "../conformance/policy-store.ts";
import { testsOn } from "../conformance/store-fixture.ts";
import { usageHistoryConformance } from "../conformance/usage-history.ts";
import { BY } from "../key-store-arguments.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { advance, settle, useFakeTimers } from "../fake-timers.ts";
import { until } from "../timing.ts";

const open = async () => {
  const directory = disposableDirectory();
  const path = directory.path("store.db");
  const stores = openSqlite(path, { server: {} });
  const another = openSqlite(path);
  return {
    ...stores,
    ...stores.operatorReads,
    operatorReads: stores.operatorReads,
    tables: sqliteTables(path),
    another: async () => another,
    reopen: async () => stores,
    async close() {
      await stores.close();
      await another.close();
      directory.remove();
    },
  };
};

describe("stores for reads, in a thread", () => {
  const testOnStores = testsOn(open);
  keyListConformance(testOnStores);
  auditStoreConformance(testOnStores);
  policyStoreConformance(testOnStores);
  usageHistoryConformance(testOnStores);

  testOnStores(
    "a read shows what was acknowledged before it",
    async ({ operatorPetStore, keys, operatorReads }) => {
      for (let i = 0; i < 100; i++) {
        const name = `${i}`;
        const pet = await operatorPetStore.createPet({ name, categoryId: 2n ** 62n }, BY);
        expect(await operatorReads.operatorPetStore.getPet(pet.id)).toEqual(pet);
        const key = await keys.createKey(
          { name, plan: "free", createdAt: 1 },
          { hash: name.padEnd(64, "-"), hint: name },
          BY,
        );
        expect(await operatorReads.keys.getKey(key.id)).toMatchObject({ name });
      }
    },
  );
});

/** A statement that counts in SQLite, without a table. */
const counting = (to: number) => () =>
  rowsOf<{ count: bigint }>(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT count(*) AS count FROM n`,
    to,
  );
/** It takes a tenth of a second or more. */
const LONG = 1_000_000;

function threadOn(options?: ConstructorParameters<typeof OperatorReadThread>[1]) {
  const directory = disposableDirectory();
  const path = directory.path("store.db");
  const database = new Database(path, { create: true });
  database.run("PRAGMA journal_mode = WAL");
  database.run("CREATE TABLE n (i INTEGER PRIMARY KEY)");
  const thread = new OperatorReadThread(path, options);
  return {
    database,
    thread,
    async [Symbol.asyncDispose]() {
      await thread.close();
      database.close(true);
      directory.remove();
    },
  };
}

/** The number of threads of this process. */
const threads = () => readdirSync("/proc/self/task").length;

test("the thread starts with the first read and ends when no other follows", async () => {
  const before = threads();
  await using opened = threadOn({ idleMs: 50 });
  const { thread } = opened;
  expect(threads()).toBe(before);
  expect(await thread.read(counting(3))).toEqual([{ count: 3n }]);
  expect(threads()).toBeGreaterThan(before);
  await until(() => threads() <= before, 10_000);
  // The next read starts another one.
  expect(await thread.read(counting(4))).toEqual([{ count: 4n }]);
});

test("while a read is long, the event loop goes on, and other reads wait for it", async () => {
  await using opened = threadOn({ maxReadMs: 60_000, maxWaitMs: 60_000 });
  const { thread } = opened;
  const ended: string[] = [];
  const long = thread.read(counting(LONG)).then(() => ended.push("long"));
  const short = thread.read(counting(1)).then(() => ended.push("short"));
  let iterations = 0;
  while (ended.length === 0) {
    await new Promise((resolve) => setImmediate(resolve));
    iterations++;
  }
  await Promise.all([long, short]);
  expect(ended).toEqual(["long", "short"]);
  expect(iterations).toBeGreaterThan(3);
});

test("a read that takes too long is Unavailable; the next one has another thread, after the statement has ended", async () => {
  const options = { maxReadMs: 10_000 };
  await using opened = threadOn(options);
  const { thread, database } = opened;
  await thread.read(counting(1));
  options.maxReadMs = 5;
  await expect(thread.read(counting(LONG))).rejects.toBeInstanceOf(Unavailable);
  options.maxReadMs = 10_000;
  let result;
  // A busy machine may take longer for the statement than a read waits for its end.
  while (result === undefined) result = await thread.read(counting(2)).catch(() => {});
  expect(result).toEqual([{ count: 2n }]);
  database.run("INSERT INTO n VALUES (1)");
});

test("a read that fails rejects, and the next one succeeds; it cannot write", async () => {
  await using opened = threadOn();
  const { thread, database } = opened;
  await expect(thread.read(() => rowsOf("SELECT * FROM missing"))).rejects.toThrow("no such table: missing");
  await expect(thread.read(() => rowsOf("INSERT INTO n VALUES (1)"))).rejects.toThrow("readonly");
  expect(await thread.read(counting(2))).toEqual([{ count: 2n }]);
  expect(database.query("SELECT count(*) AS count FROM n").get()).toEqual({ count: 0 });
});

test("a file that is damaged, missing or not a database rejects, and breaks nothing else", async () => {
  using directory = disposableDirectory();
  const path = directory.path("other.db");
  const thread = new OperatorReadThread(path);
  await expect(thread.read(counting(1))).rejects.toThrow("unable to open");
  writeFileSync(path, "x".repeat(8_192));
  await expect(thread.read(() => rowsOf("SELECT * FROM n"))).rejects.toThrow("not a database");
  await thread.close();
  await expect(thread.read(counting(1))).rejects.toThrow("the store is closed");
});

test("close waits for the connection, so that the log can be removed", async () => {
  using directory = disposableDirectory();
  const path = directory.path("store.db");
  const stores = openSqlite(path, { server: {} });
  await stores.operatorReads.operators.listOperators();
  await stores.close();
  expect(existsSync(`${path}-wal`)).toBe(false);
});

describe("the queue of reads", () => {
  const never = () => new Promise<never>(() => {});

  test("runs as many as it may at a time, the others in order, also after one has failed", async () => {
    const queue = new OperatorReadQueue({ maxRunning: 2 });
    const log: string[] = [];
    const read = (name: string) => async () => {
      log.push(`${name} begins`);
      await Bun.sleep(1);
      log.push(`${name} ends`);
      if (name === "a") throw new Error("a fails");
    };
    const [a] = await Promise.allSettled(["a", "b", "c", "d"].map((name) => queue.run(read(name))));
    expect(a?.status).toBe("rejected");
    expect(log.indexOf("c begins")).toBeGreaterThan(log.indexOf("a ends"));
    expect(log.indexOf("d begins")).toBeGreaterThan(log.indexOf("c begins"));
    expect(log.toSorted()).toHaveLength(8);
  });

  test("rejects what finds too many waiting, and what waits too long, whose place is free again", async () => {
    const queue = new OperatorReadQueue({ maxRunning: 1, maxWaiting: 1, maxWaitMs: 5 });
    void queue.run(never);
    const waiting = queue.run(async () => 1);
    await expect(queue.run(async () => 2)).rejects.toBeInstanceOf(Overloaded);
    await expect(waiting).rejects.toBeInstanceOf(Overloaded);
    await expect(queue.run(async () => 3)).rejects.toThrow("5 ms");
  });
});

describe("unless it is told otherwise", () => {
  useFakeTimers();

  test("a read takes too long after 10 s, and the thread ends 30 s after the last read", async () => {
    await using opened = threadOn();
    const { thread } = opened;
    using closing = spyOn(DatabaseThread.prototype, "close");
    await thread.read(counting(1));
    await advance(29_999);
    expect(closing).not.toHaveBeenCalled();
    await advance(1);
    expect(closing).toHaveBeenCalledTimes(1);
    const outcomes: unknown[] = [];
    const read = thread.read(counting(LONG / 4)).catch((error: unknown) => outcomes.push(error));
    await closing.mock.results[0]?.value;
    await advance(9_999);
    expect(outcomes).toEqual([]);
    await advance(1);
    await read;
    expect(outcomes).toMatchObject([{ name: "Unavailable", message: "no response within 10000 ms" }]);
  });

  test("the queue lets 200 reads wait, for 4 s each", async () => {
    const queue = new OperatorReadQueue({ maxRunning: 1 });
    for (const n of [1, 2]) expect(await queue.run(async () => n)).toBe(n);
    const never = () => new Promise<never>(() => {});
    void queue.run(never);
    const rejected: unknown[] = [];
    const wait = () => void queue.run(never).catch(({ message }) => rejected.push(message));
    for (let i = 0; i < 199; i++) wait();
    await advance(3_999);
    for (let i = 0; i < 2; i++) wait();
    await settle();
    expect(rejected).toEqual(["200 reads of operators wait"]);
    await advance(1);
    expect(rejected).toHaveLength(200);
    expect(rejected[199]).toBe("reads of operators have taken more than 4000 ms");
    await advance(3_998);
    expect(rejected).toHaveLength(200);
    await advance(1);
    expect(rejected).toHaveLength(201);
  });
});
