import { expect, spyOn, test } from "bun:test";
import { copyFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { acquireLock } from "../../src/store/sqlite/process-lock.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { allKeys } from "../key-store-arguments.ts";
import { openStoreDatabase } from "./sqlite-database.ts";

/** Runs a task of sqlite-child.ts in a process of its own. */
function spawnChild(task: "open" | "command" | "lock" | "leave", path: string) {
  const process = Bun.spawn(
    [globalThis.process.execPath, join(import.meta.dir, "sqlite-child.ts"), task, path],
    { stdin: "pipe", stdout: "pipe", stderr: "inherit" },
  );
  const firstLine = async () => {
    const { value } = await process.stdout.getReader().read();
    return new TextDecoder().decode(value).trim();
  };
  return { process, firstLine };
}

test("four processes that open an empty file at once all succeed, and each migration is applied once", async () => {
  using directory = disposableDirectory();
  const path = directory.path("store.db");
  const children = Array.from({ length: 4 }, () => spawnChild("open", path));
  for (const { firstLine } of children) expect(await firstLine()).toBe("ready");
  for (const { process } of children) {
    process.stdin.write("go\n");
    void process.stdin.end();
  }
  expect(await Promise.all(children.map(({ process }) => process.exited))).toEqual(
    Array.from({ length: 4 }, () => 0),
  );

  const { keys, close } = openSqlite(path);
  expect(await allKeys(keys)).toHaveLength(4);
  await close();
});

test("commands can write while a server writes without a pause; none of its writes fails, and its caches follow", async () => {
  using directory = disposableDirectory();
  const path = directory.path("store.db");
  const { clientStore, petJson, keys, close } = openSqlite(path, { maxBusyMs: 30_000 });
  await clientStore.createPet({ name: "name 0", categoryId: 1n }, 0);
  const cached = () => petJson.get(1)?.json;
  const { process } = spawnChild("command", path);
  const commands = new AbortController();
  const writer = async () => {
    while (!commands.signal.aborted) {
      cached();
      expect(await clientStore.createPet({ name: "Rex", categoryId: 1n }, 0)).toHaveProperty("id");
    }
  };
  const writers = Promise.all(Array.from({ length: 8 }, writer));
  expect(await process.exited).toBe(0);
  commands.abort();
  await writers;
  expect(await allKeys(keys)).toHaveLength(20);
  // A server calls it at each poll for changes.
  petJson.checkOtherProcesses();
  expect(cached()).toMatch(/^\{"id":1,"name":"name 20","categoryId":1[,}]/);
  await close();
}, 60_000);

test("what watches a database keeps no process from ending", async () => {
  using directory = disposableDirectory();
  expect(await spawnChild("leave", directory.path("store.db")).process.exited).toBe(0);
});

test("a lock is held by one process, and is free after that process is killed", async () => {
  using directory = disposableDirectory();
  const path = directory.path("lock");
  const holder = spawnChild("lock", path);
  expect(await holder.firstLine()).toBe("locked");
  expect(acquireLock(path)).toBeUndefined();

  holder.process.kill("SIGKILL");
  await holder.process.exited;
  const lock = acquireLock(path);
  expect(lock).toBeDefined();
  const rejected = spawnChild("lock", path);
  expect(await rejected.firstLine()).toBe("rejected");
  rejected.process.kill();
  await rejected.process.exited;
  lock?.release();
});

test("a lock is held once within a process too, survives garbage collection, and can be taken again after its release", () => {
  using directory = disposableDirectory();
  const path = directory.path("lock");
  const first = acquireLock(path);
  expect(first).toBeDefined();
  expect(readdirSync(dirname(path))).toEqual(["lock"]);
  expect(acquireLock(path)).toBeUndefined();
  Bun.gc(true);
  expect(acquireLock(path)).toBeUndefined();
  first?.release();
  first?.release();
  const second = acquireLock(path);
  expect(second).toBeDefined();
  expect(acquireLock(path)).toBeUndefined();
  second?.release();
});

test("a new lock file is taken when nobody has one of the databases open any more, for which it waits 3 s", () => {
  using directory = disposableDirectory();
  const [path, database] = [directory.path("lock"), directory.path("store.db")];
  const databases = [directory.path("missing.db"), database];
  const user = openStoreDatabase(database);
  let now = 7_000;
  using clock = spyOn(scheduler, "now").mockImplementation(() => (now += 1_000));
  using pauses = spyOn(Bun, "sleepSync");
  expect(acquireLock(path, databases)).toBeUndefined();
  expect(clock).toHaveBeenCalledTimes(5);
  expect(pauses.mock.calls).toEqual([[20], [20], [20]]);
  user.close();
  acquireLock(path, databases)?.release();
  expect(clock).toHaveBeenCalledTimes(6);
  // It is not new any more, but a copy of it is.
  const another = openStoreDatabase(database);
  copyFileSync(path, `${path}-copy`);
  expect(acquireLock(`${path}-copy`, databases)).toBeUndefined();
  clock.mockClear();
  using lock = acquireLock(path, databases);
  expect(lock).toBeDefined();
  expect(clock).not.toHaveBeenCalled();
  another.close();
});

test("a lock file that cannot be created is named in the error, with the reason", () => {
  using directory = disposableDirectory();
  expect(() => acquireLock(directory.path("missing/lock"))).toThrow(
    /^cannot lock .*missing\/lock: unable to open/,
  );
});
