import { expect, test } from "bun:test";
import { acquireLock, openStore } from "../../src/store/sqlite/index.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { temporaryFolder } from "./folder.ts";
import { spawnChild } from "./spawn.ts";

test("ten processes that open an empty file at once all succeed, and each step is taken once", async () => {
  using folder = temporaryFolder();
  const path = folder.path("store.db");
  const children = Array.from({ length: 10 }, () => spawnChild("open", path));
  for (const { lines } of children) expect((await lines.next()).value).toBe("ready");
  for (const { process } of children) {
    process.stdin.write("go\n");
    void process.stdin.end();
  }
  expect(await Promise.all(children.map(({ process }) => process.exited))).toEqual(
    Array.from({ length: 10 }, () => 0),
  );

  const { keys, close } = openStore(path);
  expect(await keys.listKeys()).toHaveLength(10);
  await close();
}, 30_000);

test("a process killed while it writes as fast as it can has kept every pet that it answered", async () => {
  using folder = temporaryFolder();
  const path = folder.path("store.db");
  const { process, lines } = spawnChild("write", path);
  const answered: bigint[] = [];
  for await (const line of lines) {
    answered.push(BigInt(line));
    if (answered.length === 3_000) process.kill("SIGKILL");
  }
  expect(await process.exited).not.toBe(0);
  expect(answered.length).toBeGreaterThanOrEqual(3_000);

  const { store, close } = openStore(path);
  for (const id of answered) expect((await store.getPet(id))?.id).toBe(id);
  await close();
  const connection = openDatabase(path, {
    migrations: MIGRATIONS,
    synchronous: "FULL",
    cacheKiB: 1024,
    busyTimeoutMs: 0,
  });
  expect(connection.value("PRAGMA integrity_check")).toBe("ok");
  connection.close();
}, 30_000);

test("commands get their turn while a server writes without a pause, and fail none of its writes", async () => {
  using folder = temporaryFolder();
  const { store, keys, close } = openStore(folder.path("store.db"));
  const { process } = spawnChild("command", folder.path("store.db"));
  const commands = new AbortController();
  const writer = async () => {
    while (!commands.signal.aborted)
      expect(await store.createPet({ name: "Rex", categoryId: 1n }, 0)).toHaveProperty("id");
  };
  const writers = Promise.all(Array.from({ length: 32 }, writer));
  expect(await process.exited).toBe(0);
  commands.abort();
  await writers;
  expect(await keys.listKeys()).toHaveLength(20);
  await close();
}, 60_000);

test("a lock is held by one process, and falls to another when its holder is killed", async () => {
  using folder = temporaryFolder();
  const path = folder.path("lock");
  const holder = spawnChild("hold", path);
  expect((await holder.lines.next()).value).toBe("held");
  expect(acquireLock(path)).toBeUndefined();

  holder.process.kill("SIGKILL");
  await holder.process.exited;
  const lock = acquireLock(path);
  expect(lock).toBeDefined();
  const refused = spawnChild("hold", path);
  expect((await refused.lines.next()).value).toBe("refused");
  refused.process.kill();
  await refused.process.exited;
  lock?.release();
});

test("a lock is held once within a process too, and can be taken again after its release", () => {
  using folder = temporaryFolder();
  const path = folder.path("lock");
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

test("a lock that cannot be made says where and why", () => {
  using folder = temporaryFolder();
  expect(() => acquireLock(folder.path("missing/lock"))).toThrow(
    /^cannot lock .*missing\/lock: unable to open/,
  );
});
