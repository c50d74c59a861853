import { expect, test } from "bun:test";
import { join } from "node:path";
import { acquireLock } from "../../src/store/sqlite/process-lock.ts";
import { inspectDatabase } from "../../src/store/sqlite/snapshot.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { allKeys } from "../key-store-arguments.ts";

/** Runs a task of sqlite-child.ts in a process of its own. */
function spawnChild(task: "open" | "write" | "change-keys" | "command" | "lock", path: string) {
  const process = Bun.spawn(
    [globalThis.process.execPath, join(import.meta.dir, "sqlite-child.ts"), task, path],
    { stdin: "pipe", stdout: "pipe", stderr: "inherit" },
  );
  return { process, lines: linesOf(process.stdout) };
}

/** Complete lines only: a killed process can leave part of one. */
async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

test("four processes that open an empty file at once all succeed, and each migration is applied once", async () => {
  using folder = temporaryFolder();
  const path = folder.path("store.db");
  const children = Array.from({ length: 4 }, () => spawnChild("open", path));
  for (const { lines } of children) expect((await lines.next()).value).toBe("ready");
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
}, 30_000);

test("after a process is killed in the middle of writes, every pet whose write had resolved is stored", async () => {
  using folder = temporaryFolder();
  const path = folder.path("store.db");
  const { process, lines } = spawnChild("write", path);
  const created: bigint[] = [];
  for await (const line of lines) {
    created.push(BigInt(line));
    if (created.length === 1_000) process.kill("SIGKILL");
  }
  expect(await process.exited).not.toBe(0);
  expect(created.length).toBeGreaterThanOrEqual(1_000);

  const { store, close } = openSqlite(path);
  const lost = [];
  for (const id of created) if ((await store.getPet(id)) === undefined) lost.push(id);
  expect(lost).toEqual([]);
  await close();
  expect(inspectDatabase(path).problems).toEqual([]);
}, 30_000);

test("after a process is killed in the middle of changes of keys, every change has its audit entry, and no other", async () => {
  using folder = temporaryFolder();
  const path = folder.path("store.db");
  const { process, lines } = spawnChild("change-keys", path);
  let changed = 0;
  for await (const line of lines) {
    changed = Number(line);
    if (changed === 100) process.kill("SIGKILL");
  }
  await process.exited;
  const { keys, audit, close } = openSqlite(path);
  const { items } = await audit.listAudit({ limit: 10_000 });
  const expected = (await allKeys(keys)).flatMap(({ id, plan }) =>
    plan === "pro" ? [`key.created ${id}`, `key.updated ${id}`] : [`key.created ${id}`],
  );
  expect(changed).toBeGreaterThanOrEqual(100);
  expect(items.map(({ action, target }) => `${action} ${target?.id}`).toSorted()).toEqual(
    expected.toSorted(),
  );
  expect(expected).toContain(`key.updated ${changed}`);
  await close();
}, 30_000);

test("commands can write while a server writes without a pause; none of its writes fails, and its caches follow", async () => {
  using folder = temporaryFolder();
  const path = folder.path("store.db");
  const { store, petJson, keys, close } = openSqlite(path, { maxBusyMs: 30_000 });
  await store.createPet({ name: "name 0", categoryId: 1n }, 0);
  const cached = () => petJson.get(1)?.json;
  const { process } = spawnChild("command", path);
  const commands = new AbortController();
  const writer = async () => {
    while (!commands.signal.aborted) {
      cached();
      expect(await store.createPet({ name: "Rex", categoryId: 1n }, 0)).toHaveProperty("id");
    }
  };
  const writers = Promise.all(Array.from({ length: 8 }, writer));
  expect(await process.exited).toBe(0);
  commands.abort();
  await writers;
  expect(await allKeys(keys)).toHaveLength(20);
  while (cached() !== '{"id":1,"name":"name 20","categoryId":1}') await Bun.sleep(10);
  await close();
}, 60_000);

test("a lock is held by one process, and is free after that process is killed", async () => {
  using folder = temporaryFolder();
  const path = folder.path("lock");
  const holder = spawnChild("lock", path);
  expect((await holder.lines.next()).value).toBe("locked");
  expect(acquireLock(path)).toBeUndefined();

  holder.process.kill("SIGKILL");
  await holder.process.exited;
  const lock = acquireLock(path);
  expect(lock).toBeDefined();
  const rejected = spawnChild("lock", path);
  expect((await rejected.lines.next()).value).toBe("rejected");
  rejected.process.kill();
  await rejected.process.exited;
  lock?.release();
});

test("a lock is held once within a process too, survives garbage collection, and can be taken again after its release", () => {
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

test("a lock file that cannot be created is named in the error, with the reason", () => {
  using folder = temporaryFolder();
  expect(() => acquireLock(folder.path("missing/lock"))).toThrow(
    /^cannot lock .*missing\/lock: unable to open/,
  );
});
