import { describe, expect, test } from "bun:test";
import { GroupCommit } from "../../src/store/sqlite/group-commit.ts";
import type { Connection } from "../../src/store/sqlite/connection.ts";
import { temporaryDatabase, whileAnotherWrites } from "./database.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

function insertInto(connection: Connection) {
  return (name: string) =>
    connection.value("INSERT INTO pets (name, category_id) VALUES (?, 1) RETURNING id", name);
}

const outcomes = (settled: PromiseSettledResult<unknown>[]) =>
  settled.map((each) => (each.status === "fulfilled" ? each.value : String(each.reason.message)));

describe("writes that arrive together", () => {
  test("share one transaction, and are answered in their order", async () => {
    using db = temporaryDatabase();
    const batches: number[] = [];
    const commits = new GroupCommit(db.connection, { housekeep: (writes) => batches.push(writes) });
    const insert = insertInto(db.connection);
    const ids = await Promise.all(
      Array.from({ length: 32 }, (_, i) => commits.submit(() => insert(`pet ${i}`))),
    );
    expect(ids).toEqual(Array.from({ length: 32 }, (_, i) => BigInt(i + 1)));
    expect(batches).toEqual([32]);
    db.connection.close();
  });

  test("share one also when they come in different microtasks of a turn", async () => {
    using db = temporaryDatabase();
    const batches: number[] = [];
    const commits = new GroupCommit(db.connection, { housekeep: (writes) => batches.push(writes) });
    const later = async (ticks: number) => {
      for (let i = 0; i < ticks; i++) await undefined;
      return commits.submit(() => ticks);
    };
    await Promise.all([later(0), later(1), later(5), later(20)]);
    expect(batches).toEqual([4]);
    db.connection.close();
  });

  test("are divided when they are very many, so that no transaction holds up the rest of the program", async () => {
    using db = temporaryDatabase();
    const batches: number[] = [];
    const commits = new GroupCommit(db.connection, { housekeep: (writes) => batches.push(writes) });
    await Promise.all(Array.from({ length: 2_500 }, () => commits.submit(() => {})));
    expect(batches).toEqual([1_000, 1_000, 500]);
    db.connection.close();
  });

  test("fail one by one: what a write that throws has done is undone, and the others are kept", async () => {
    using db = temporaryDatabase();
    const commits = new GroupCommit(db.connection);
    const insert = insertInto(db.connection);
    const failing = new Set([3, 4, 17, 31]);
    const settled = await Promise.allSettled(
      Array.from({ length: 32 }, (_, i) =>
        commits.submit(() => {
          insert(`pet ${i}`);
          if (failing.has(i)) throw new Error(`fault ${i}`);
          return i;
        }),
      ),
    );
    expect(outcomes(settled)).toEqual(
      Array.from({ length: 32 }, (_, i) => (failing.has(i) ? `fault ${i}` : i)),
    );
    expect(db.count("pets")).toBe(28);
    for (const i of failing)
      expect(db.connection.value("SELECT 1 FROM pets WHERE name = ?", `pet ${i}`)).toBeUndefined();
    db.connection.close();
  });

  test("fail one by one also when it is the commit that fails: nothing is answered before it", async () => {
    using db = temporaryDatabase();
    const commits = new GroupCommit(db.connection);
    const insert = insertInto(db.connection);
    const orphan = () => {
      db.connection.run("PRAGMA defer_foreign_keys = ON");
      db.connection.run("INSERT INTO orders (pet_id, status, created_at) VALUES (999, 'placed', 0)");
      return "never answered";
    };
    const settled = await Promise.allSettled([
      commits.submit(() => insert("before")),
      commits.submit(orphan),
      commits.submit(() => insert("after")),
    ]);
    expect(outcomes(settled)).toEqual([1n, "FOREIGN KEY constraint failed", 2n]);
    expect([db.count("pets"), db.count("orders")]).toEqual([2, 0]);
    db.connection.close();
  });

  test("are turned away beyond the bound, at once, and those accepted are not harmed", async () => {
    using db = temporaryDatabase();
    const commits = new GroupCommit(db.connection, { maxWaiting: 3 });
    const settled = await Promise.allSettled(Array.from({ length: 5 }, (_, i) => commits.submit(() => i)));
    const full = "3 writes are waiting already";
    expect(outcomes(settled)).toEqual([0, 1, 2, full, full]);
    expect(settled[3]).toMatchObject({ reason: { name: "Unavailable", retryAfterSeconds: 1 } });
    db.connection.close();
  });
});

describe("while another process writes", () => {
  test("writes wait for it, unanswered, and are committed after it", async () => {
    using db = temporaryDatabase();
    const commits = new GroupCommit(db.connection);
    const insert = insertInto(db.connection);
    let isAnswered = false;
    let write: Promise<unknown> | undefined;
    await whileAnotherWrites(db.path, async () => {
      write = commits.submit(() => insert("patient")).finally(() => void (isAnswered = true));
      await turn();
      await turn();
      expect(isAnswered).toBe(false);
      expect(db.count("pets")).toBe(0);
    });
    expect(await write).toBe(1n);
    expect(db.count("pets")).toBe(1);
    db.connection.close();
  });

  test("writes are given up after a while, and the next ones work", async () => {
    using db = temporaryDatabase();
    const commits = new GroupCommit(db.connection, { maxBusyMs: 30 });
    const insert = insertInto(db.connection);
    await whileAnotherWrites(db.path, async () => {
      const settled = await Promise.allSettled([1, 2, 3].map(() => commits.submit(() => insert("unlucky"))));
      for (const each of settled)
        expect(each).toMatchObject({ status: "rejected", reason: { name: "Unavailable" } });
    });
    expect(db.count("pets")).toBe(0);
    expect(await commits.submit(() => insert("lucky"))).toBe(1n);
    db.connection.close();
  });

  test("close waits for what was accepted", async () => {
    using db = temporaryDatabase();
    const commits = new GroupCommit(db.connection);
    const insert = insertInto(db.connection);
    let closing: Promise<void> | undefined;
    let write: Promise<unknown> | undefined;
    await whileAnotherWrites(db.path, async () => {
      write = commits.submit(() => insert("last"));
      closing = commits.close();
      await turn();
    });
    await closing;
    expect(db.count("pets")).toBe(1);
    expect(await write).toBe(1n);
    await expect(commits.submit(() => {})).rejects.toMatchObject({ name: "Unavailable" });
    db.connection.close();
  });
});
