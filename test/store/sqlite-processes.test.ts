import { expect, test } from "bun:test";
import { join } from "node:path";
import { acquireLock } from "../../src/store/sqlite/process-lock.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { disposableDirectory } from "../disposable-directory.ts";
import { allKeys } from "../key-store-arguments.ts";

/** Runs a task of sqlite-child.ts in a process of its own. */
function spawnChild(task: "open" | "command" | "lock", path: string) {
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

test("a lock file that cannot be created is named in the error, with the reason", () => {
  using directory = disposableDirectory();
  expect(() => acquireLock(directory.path("missing/lock"))).toThrow(
    /^cannot lock .*missing\/lock: unable to open/,
  );
});
