import { describe, expect, spyOn, test } from "bun:test";
import { atEndOfIteration, scheduler } from "../../src/runtime/scheduler.ts";
import { BatchQueue } from "../../src/store/sql/batch-queue.ts";
import type { Connection } from "../../src/store/sqlite/connection.ts";
import { isBusy } from "../../src/store/sqlite/errors.ts";
import { SqliteClientStore } from "../../src/store/sqlite/client-store.ts";
import { AT, rex } from "../conformance/store-fixture.ts";
import { temporaryDatabase, whileLocked } from "./sqlite-database.ts";
import { until } from "../timing.ts";

/**
 * Group commit on a SQLite database, with a record of how many writes each transaction had. Without a clock, it
 * collects as many on a busy machine.
 */
function groupCommit(connection: Connection, { maxQueueMs = 60_000, hasClock = true } = {}) {
  const batches: number[] = [];
  const writes = new BatchQueue<() => unknown, unknown>({
    run: (works) => {
      batches.push(works.length);
      return connection.transaction(() => works.map((work) => work()));
    },
    maxBatch: 1_000,
    maxQueued: 10_000,
    maxQueueMs,
    retry: { isBusy, maxMs: () => 60_000, pauseMs: 4 },
    scheduler: hasClock ? scheduler : { ...scheduler, now: () => 0 },
  });
  return { writes, batches };
}

function insertInto(connection: Connection) {
  return (name: string) =>
    connection.value("INSERT INTO pets (name, category_id) VALUES (?, 1) RETURNING id", name);
}

const outcomes = (settled: PromiseSettledResult<unknown>[]) =>
  settled.map((each) => (each.status === "fulfilled" ? each.value : String(each.reason.message)));

test("responses that are ready are written before a transaction blocks the event loop", async () => {
  using db = temporaryDatabase();
  const order: string[] = [];
  const store = new SqliteClientStore(db.connection, { onCommit: () => order.push("committed") });
  const created = store.createPet(rex, AT);
  atEndOfIteration(() => order.push("written"));
  await created;
  expect(order).toEqual(["written", "committed"]);
});

test("responses that are ready are written before a transaction is tried again", async () => {
  const order: string[] = [];
  const random = spyOn(Math, "random").mockReturnValue(1);
  const writes = new BatchQueue<string, string>({
    run(batch) {
      order.push("tried");
      if (order.length > 1) return batch;
      setTimeout(() => atEndOfIteration(() => order.push("written")), 4);
      throw new Error("busy");
    },
    maxBatch: 1,
    maxQueued: 1,
    retry: { isBusy: () => true, maxMs: () => 1_000, pauseMs: 4 },
  });
  await writes.submit("pet");
  random.mockRestore();
  expect(order).toEqual(["tried", "written", "tried"]);
});

/** A queue whose time passes only as given here, and a record of what it does. */
function simulatedQueue(onYield = () => {}, options: { waitsForReturning?: boolean } = {}) {
  const log: string[] = [];
  const time = { now: 0 };
  const queue = new BatchQueue<() => string, string>({
    run: (works) => works.map((work) => work()),
    maxBatch: 3,
    maxQueued: 4,
    maxQueueMs: 20,
    onBatch: (items, ms) => void log.push(`${items.length} in ${ms} ms`),
    retry: { isBusy: (error) => error === "busy", maxMs: () => 10, pauseMs: 4 },
    ...options,
    scheduler: {
      ...scheduler,
      now: () => time.now,
      random: () => 0.5,
      async yield() {
        await undefined;
        log.push("iteration");
        onYield();
      },
      async sleep(ms) {
        log.push(`pause of ${ms} ms`);
        time.now += ms;
      },
    },
  });
  const submitted: Promise<unknown>[] = [];
  const submit = (work: () => string) => {
    const outcome = queue.submit(work).catch((error: unknown) => `${error}`);
    submitted.push(outcome.then((text) => log.push(text)));
  };
  /** Resolves when everything that was submitted meanwhile has its outcome. */
  const finish = async () => {
    for (const each of submitted) await each;
    return log;
  };
  return { log, time, submit, finish };
}

describe("by the clock of a queue", () => {
  test("a batch waits for iterations that bring further items, for 0.3 ms, and has as many as it may", async () => {
    const arriving = ["b", "cd", "e"];
    const { time, submit, finish } = simulatedQueue(() => {
      time.now += 0.15;
      for (const name of arriving.shift() ?? "") submit(() => name);
    });
    submit(() => "a");
    const [first, second] = [
      ["iteration", "iteration", "3 in 0 ms", "a", "b", "c"],
      ["iteration", "iteration", "2 in 0 ms", "d", "e"],
    ];
    expect(await finish()).toEqual([...first, ...second]);
  });

  describe("that waits for those who return", () => {
    /** A disk takes 5 ms for each batch, and an iteration of the event loop 0.125 ms. */
    function clients() {
      const returning: (() => void)[] = [];
      const queue = simulatedQueue(
        () => {
          queue.time.now += 0.125;
          returning.shift()?.();
        },
        { waitsForReturning: true },
      );
      const write = (name: string, meanwhile = () => {}) =>
        queue.submit(() => {
          meanwhile();
          queue.time.now += 5;
          return name;
        });
      return { ...queue, write, returning };
    }
    const batches = (log: readonly string[]) => log.filter((each) => !each.startsWith("iteration"));

    test("a client that writes alone waits for nobody, whether it returns at once or later", async () => {
      const { log, write, finish, time } = clients();
      for (const name of ["a", "b"]) {
        write(name);
        await finish();
      }
      time.now += 1_000;
      write("c");
      await finish();
      expect(log).toEqual(["a", "b", "c"].flatMap((name) => ["iteration", "1 in 5 ms", name]));
    });

    test("clients that write in turns share a batch from the second one on", async () => {
      const { log, write, finish, returning } = clients();
      write("a", () => {
        write("b");
        // The first client returns in the third iteration after its result.
        returning.push(
          () => {},
          () => {},
          () => write("a again"),
        );
      });
      await finish();
      expect(batches(log)).toEqual(["1 in 5 ms", "a", "2 in 10 ms", "b", "a again"]);
    });

    test("a batch waits for a fifth of the time of the last one", async () => {
      const { log, write, finish } = clients();
      write("a", () => write("b"));
      await finish();
      const second = log.slice(log.indexOf("a") + 1);
      expect(second.filter((each) => each === "iteration")).toHaveLength(8);
      expect(batches(second)).toEqual(["1 in 5 ms", "b"]);
    });
  });

  test("an item may wait for 20 ms, and one too many is rejected at once", async () => {
    const { time, submit, finish } = simulatedQueue();
    const taking = (ms: number, name: string, others = "") => {
      return () => {
        for (const other of others) submit(taking(7, other));
        time.now += ms;
        return name;
      };
    };
    submit(taking(20, "a", "bcdef"));
    expect(await finish()).toEqual([
      "iteration",
      "1 in 20 ms",
      "Unavailable: the queue is full (4)",
      "a",
      "iteration",
      "3 in 21 ms",
      "b",
      "c",
      "d",
      "iteration",
      "Unavailable: queued for more than 20 ms",
    ]);
  });

  test("a batch is tried again after a pause until its items are as old as they may be", async () => {
    const { log, time, submit, finish } = simulatedQueue();
    submit(() => {
      log.push(`busy at ${time.now} ms`);
      throw "busy";
    });
    const attempts = [0, 2, 4, 6, 8, 10].flatMap((ms) => [`busy at ${ms} ms`, "pause of 2 ms"]);
    const done = (await finish()).filter((each) => each !== "iteration");
    expect(done).toEqual([...attempts, "busy"]);
  });
});

describe("group commit", () => {
  test("concurrent writes, also of different microtasks, share one transaction and resolve in their order", async () => {
    using db = temporaryDatabase();
    const { writes, batches } = groupCommit(db.connection, { hasClock: false });
    const insert = insertInto(db.connection);
    const ids = await Promise.all(
      Array.from({ length: 32 }, async (_, i) => {
        for (let ticks = 0; ticks < i; ticks++) await undefined;
        return writes.submit(() => insert(`pet ${i}`));
      }),
    );
    expect(ids).toEqual(Array.from({ length: 32 }, (_, i) => BigInt(i + 1)));
    expect(batches).toEqual([32]);
  });

  test("a write that fails at the commit is rolled back alone, and no write resolves before its commit", async () => {
    using db = temporaryDatabase();
    const { writes } = groupCommit(db.connection);
    const insert = insertInto(db.connection);
    const insertOrphan = () => {
      db.connection.run("PRAGMA defer_foreign_keys = ON");
      db.connection.run("INSERT INTO orders (pet_id, status, created_at) VALUES (999, 'placed', 0)");
      return "inserted";
    };
    const settled = await Promise.allSettled([
      writes.submit(() => insert("before")),
      writes.submit(insertOrphan),
      writes.submit(() => insert("after")),
    ]);
    expect(outcomes(settled)).toEqual([1n, "FOREIGN KEY constraint failed", 2n]);
    expect([db.count("pets"), db.count("orders")]).toEqual([2, 0]);
  });

  test("Unavailable: writes that were queued for too long, without a transaction", async () => {
    using db = temporaryDatabase();
    const { writes, batches } = groupCommit(db.connection, { maxQueueMs: 20 });
    const write = writes.submit(() => 1);
    Bun.sleepSync(25);
    await expect(write).rejects.toThrow("queued for more than 20 ms");
    expect(batches).toEqual([]);
  });
});

describe("the SQLite store", () => {
  test("commits at most 1,000 writes in one transaction", async () => {
    using db = temporaryDatabase();
    const store = new SqliteClientStore(db.connection);
    const transactions = spyOn(db.connection, "transaction");
    await Promise.all(Array.from({ length: 2_500 }, () => store.createPet(rex, AT)));
    const sizes = transactions.mock.results.map(({ value }) => (Array.isArray(value) ? value.length : 0));
    expect(sizes).toEqual([1_000, 1_000, 500]);
    await store.close();
    await expect(store.createPet(rex, AT)).rejects.toThrow("the store is closed");
  });

  test("queues 10,000 writes and rejects the next one", async () => {
    using db = temporaryDatabase();
    const store = new SqliteClientStore(db.connection);
    const settled = await Promise.allSettled(Array.from({ length: 10_001 }, () => store.createPet(rex, AT)));
    expect(settled.filter(({ status }) => status === "rejected")).toEqual(settled.slice(10_000));
    const reason = { name: "Unavailable", message: "the queue is full (10000)", retryAfterSeconds: 1 };
    expect(settled[10_000]).toMatchObject({ reason });
    expect(db.count("pets")).toBe(10_000);
    await store.close();
  });

  test("rejects a write after 2,000 ms behind another process's lock, and commits one that came later", async () => {
    using db = temporaryDatabase();
    const store = new SqliteClientStore(db.connection);
    let now = 0;
    const clock = spyOn(performance, "now").mockImplementation(() => now);
    const attempts = spyOn(db.connection, "transaction");
    const anotherAttempt = async () => {
      const { length } = attempts.mock.calls;
      // The attempt after the next one has begun with the time of now.
      await until(() => attempts.mock.calls.length >= length + 2, 10_000);
    };
    let later: ReturnType<typeof store.createPet> | undefined;
    await whileLocked(db.path, async () => {
      const outcome = store.createPet(rex, AT).catch((error: unknown) => error);
      await anotherAttempt();
      now = 1_999;
      later = store.createPet(rex, AT);
      await anotherAttempt();
      now = 2_000;
      expect(await outcome).toMatchObject({ name: "Unavailable" });
      await anotherAttempt();
    });
    clock.mockRestore();
    expect(await later).toMatchObject({ id: 1n });
    await store.close();
  });
});
