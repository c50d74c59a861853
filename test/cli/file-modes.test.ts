import { afterAll, describe, expect, test, setDefaultTimeout } from "bun:test";
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { giveToDirectoryOwner } from "../../src/durable-files.ts";
import { cleanUp, EXECUTABLE, petstore, spawnTracked, temporaryDirectory } from "./cli.ts";
import { serve, type ServerProcess, started } from "./server-process.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

function modesIn(directory: string): Record<string, string> {
  return Object.fromEntries(readdirSync(directory).map((name) => [name, modeOf(join(directory, name))]));
}

/** With the least restrictive mask there is. */
function serveWithoutMask(data: string): Promise<ServerProcess> {
  const line = 'umask 000 && exec "$0" serve --port 0 --data "$1"';
  return started(spawnTracked(["sh", "-c", line, EXECUTABLE, data], { cwd: temporaryDirectory() }));
}

const FILES_OF_A_SERVER = {
  "production-admin-token": "600",
  "production-admin-url": "600",
  "production-first-key": "600",
  "production-limits.db": "600",
  "production-limits.db-shm": "600",
  "production-limits.db-wal": "600",
  "production.db": "600",
  "production.db-shm": "600",
  "production.db-wal": "600",
  "production.lock": "600",
};

const warnings = async ({ log }: ServerProcess) =>
  (await log()).map((line) => JSON.parse(line)).filter(({ level }) => level !== "info");

describe("the data directory", () => {
  test("it and its files are for their owner only, whatever the umask", async () => {
    const parent = join(temporaryDirectory(), "new");
    const server = await serveWithoutMask(join(parent, "data"));
    expect(modesIn(join(parent, "data"))).toEqual(FILES_OF_A_SERVER);
    expect([modeOf(parent), modeOf(join(parent, "data"))]).toEqual(["700", "700"]);
    expect(await server.stop("SIGTERM")).toBe(0);
    expect(await warnings(server)).toEqual([]);
  });

  test("in an open directory the files are for their owner only, and the server warns", async () => {
    const data = temporaryDirectory();
    chmodSync(data, 0o755);
    const server = await serveWithoutMask(data);
    expect(modesIn(data)).toEqual(FILES_OF_A_SERVER);
    expect(await server.stop("SIGTERM")).toBe(0);
    expect(await warnings(server)).toEqual([
      expect.objectContaining({ event: "data-directory.open-to-others", directory: data, mode: "0755" }),
    ]);
  });

  test("a command creates private files too", async () => {
    const data = join(temporaryDirectory(), "data");
    const line = 'umask 000 && exec "$0" keys create --name x --plan free --data "$1"';
    const child = spawnTracked(["sh", "-c", line, EXECUTABLE, data], { cwd: temporaryDirectory() });
    expect(await child.exited).toBe(0);
    expect(modesIn(data)).toEqual({ "production.db": "600" });
    expect(modeOf(data)).toBe("700");
  });

  // Only root can give files away; everybody else owns what they create.
  const owner = process.getuid?.() === 0 ? 65_534 : (process.getuid?.() ?? 0);

  test("a database that root creates belongs to the owner of the directory", async () => {
    const data = temporaryDirectory();
    chownSync(data, owner, process.getgid?.() ?? 0);
    await petstore("keys", "create", "--name", "x", "--plan", "free", "--data", data);
    expect(statSync(join(data, "production.db")).uid).toBe(owner);
  });

  test("a link in the directory does not get its owner the file of somebody else", () => {
    const [data, target] = [temporaryDirectory(), join(temporaryDirectory(), "target")];
    chownSync(data, owner, process.getgid?.() ?? 0);
    writeFileSync(target, "");
    symlinkSync(target, join(data, "production.lock"));
    giveToDirectoryOwner(join(data, "production.lock"));
    expect(statSync(target).uid).toBe(process.getuid?.() ?? 0);
    expect(lstatSync(join(data, "production.lock")).uid).toBe(owner);
  });

  test("files of an earlier version become private, which is logged once", async () => {
    const data = temporaryDirectory();
    const first = await serve(data);
    await first.stop("SIGKILL");
    const names = readdirSync(data).filter((name) => name !== "production-first-key");
    expect(names).toContain("production.db-wal");
    for (const name of names) chmodSync(join(data, name), 0o644);

    const second = await serve(data);
    expect(modesIn(data)).toEqual(FILES_OF_A_SERVER);
    expect(await second.stop("SIGTERM")).toBe(0);
    const lines = (await second.log()).filter((line) => line.includes("data-directory.made-private"));
    expect(lines).toHaveLength(1);
    for (const name of names) expect(lines[0]).toContain(`"${join(data, name)}"`);

    const third = await serve(data);
    expect(await third.stop("SIGTERM")).toBe(0);
    expect((await third.log()).join()).not.toContain("data-directory.made-private");
  });

  test("a file of another user keeps its mode", async () => {
    const data = temporaryDirectory();
    await petstore("keys", "create", "--name", "x", "--plan", "free", "--data", data);
    const path = join(data, "production.db");
    chmodSync(path, 0o644);
    // Only root can give files away; for everybody else the other user's file is out of reach anyway.
    if (process.getuid?.() === 0) chownSync(path, 65_534, 65_534);
    await petstore("keys", "list", "--data", data);
    expect(modeOf(path)).toBe(process.getuid?.() === 0 ? "644" : "600");
  });
});

describe("one server per data directory", () => {
  const rejected = async (data: string) => {
    const { code, out, err } = await petstore("serve", "--port", "0", "--data", data);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    return err;
  };
  const alreadyRunning = (data: string) =>
    `petstore: another server is already running on ${data} (production)\n`;

  test("a removed lock file does not let a second one start, however often it is tried", async () => {
    const data = temporaryDirectory();
    const { stop } = await serve(data);
    Bun.spawnSync(["rm", join(data, "production.lock")]);
    expect(await rejected(data)).toBe(alreadyRunning(data));
    expect(await rejected(data)).toBe(alreadyRunning(data));
    expect(await stop("SIGTERM")).toBe(0);
    const next = await serve(data);
    expect(await rejected(data)).toBe(alreadyRunning(data));
    expect(await next.stop("SIGTERM")).toBe(0);
  }, 30_000);

  test.each([
    ["an empty file", 'umask 077 && rm "$0" && touch "$0"'],
    ["a copy", 'cp -p "$0" "$0.copy" && mv "$0.copy" "$0"'],
  ])(
    "nor does a lock file that was replaced by %s",
    async (_name, line) => {
      const data = temporaryDirectory();
      const { stop } = await serve(data);
      expect(Bun.spawnSync(["sh", "-c", line, join(data, "production.lock")]).exitCode).toBe(0);
      expect(await rejected(data)).toBe(alreadyRunning(data));
      expect(await stop("SIGTERM")).toBe(0);
    },
    30_000,
  );

  test("after kill -9 the next one starts, with and without the lock file", async () => {
    const data = temporaryDirectory();
    await (await serve(data)).stop("SIGKILL");
    const second = await serve(data);
    await second.stop("SIGKILL");
    Bun.spawnSync(["rm", join(data, "production.lock")]);
    const third = await serve(data);
    expect(await third.stop("SIGTERM")).toBe(0);
  }, 30_000);

  test("commands work beside a server, also without its lock file", async () => {
    const data = temporaryDirectory();
    const { stop } = await serve(data);
    Bun.spawnSync(["rm", join(data, "production.lock")]);
    expect((await petstore("keys", "list", "--data", data)).code).toBe(0);
    expect((await petstore("keys", "create", "--name", "x", "--plan", "free", "--data", data)).code).toBe(0);
    expect(await stop("SIGTERM")).toBe(0);
  });

  test("a lock file of an earlier version, which is empty, is taken", async () => {
    const data = temporaryDirectory();
    mkdirSync(data, { recursive: true });
    writeFileSync(join(data, "production.lock"), "", { mode: 0o600 });
    const { stop } = await serve(data);
    expect(await stop("SIGTERM")).toBe(0);
  });
});
