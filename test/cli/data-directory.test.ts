import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { existingParent, rejectUnwritable } from "../../src/data-directory.ts";
import { runProgram } from "../../trials/harness/child.ts";
import { PETSTORE } from "../../trials/harness/petstore.ts";
import { cleanUpAfterAll, InProcessCli, type InProcessServer, cliDirectory } from "./cli.ts";

cleanUpAfterAll();

let cli: InProcessCli;
beforeEach(() => void (cli = new InProcessCli({ hasData: false })));

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

function modesIn(directory: string): Record<string, string> {
  return Object.fromEntries(readdirSync(directory).map((name) => [name, modeOf(join(directory, name))]));
}

const DATABASES = ["-limits.db", "-limits.db-shm", "-limits.db-wal", ".db", ".db-shm", ".db-wal", ".lock"];
const FILES_OF_A_SERVER = Object.fromEntries(
  ["-admin-token", "-first-key", "-url", ...DATABASES].map((name) => [`production${name}`, "600"]),
);

const eventsOf = ({ lines }: InProcessServer, prefix: string) =>
  lines.map((line) => JSON.parse(line)).filter(({ event }) => event.startsWith(prefix));

describe("files are for their owner only, whatever the umask", () => {
  const mask = process.umask();
  afterEach(() => void process.umask(mask));

  test("those of a server, and the directories that it creates", async () => {
    const data = join(cli.dataDir, "below");
    process.umask(0);
    const server = await cli.serve(["--data", data]);
    expect(modesIn(data)).toEqual(FILES_OF_A_SERVER);
    expect([modeOf(cli.dataDir), modeOf(data)]).toEqual(["700", "700"]);
    await server.stop();
    expect(eventsOf(server, "data-directory.")).toEqual([]);
  });

  test("also in a directory that is open to others, of which the server warns", async () => {
    mkdirSync(cli.dataDir);
    chmodSync(cli.dataDir, 0o755);
    process.umask(0);
    const server = await cli.serve();
    expect(modesIn(cli.dataDir)).toEqual(FILES_OF_A_SERVER);
    await server.stop();
    const warning = { level: "warn", directory: cli.dataDir, mode: "0755" };
    expect(eventsOf(server, "data-directory.")).toMatchObject([
      { event: "data-directory.open-to-others", ...warning },
    ]);
  });

  test("those of a command", async () => {
    process.umask(0);
    await cli.run("migrate");
    expect(modesIn(cli.dataDir)).toEqual({ "production.db": "600", "production.lock": "600" });
    expect(modeOf(cli.dataDir)).toBe("700");
  });

  test("those of an earlier version become private, which is logged once", async () => {
    await (await cli.serve()).stop();
    // A crash leaves these files.
    for (const name of ["production.db-wal", "production.db-shm"]) {
      writeFileSync(join(cli.dataDir, name), "");
    }
    const names = readdirSync(cli.dataDir).filter((name) => name !== "production-first-key");
    for (const name of names) chmodSync(join(cli.dataDir, name), 0o644);

    const second = await cli.serve();
    expect(modesIn(cli.dataDir)).toEqual(FILES_OF_A_SERVER);
    await second.stop();
    const [event, ...others] = eventsOf(second, "data-directory.made-private");
    expect(others).toEqual([]);
    expect(event.files.toSorted()).toEqual(names.map((name) => join(cli.dataDir, name)).toSorted());

    const third = await cli.serve();
    await third.stop();
    expect(eventsOf(third, "data-directory.made-private")).toEqual([]);
  });
});

describe("owners", () => {
  const self = process.getuid?.() ?? 0;
  // Only root can give files away; everybody else owns what they create.
  const owner = self === 0 ? 65_534 : self;

  test("a database that root creates belongs to the owner of the directory", async () => {
    mkdirSync(cli.dataDir);
    chownSync(cli.dataDir, owner, process.getgid?.() ?? 0);
    await cli.run("migrate");
    expect(statSync(join(cli.dataDir, "production.db")).uid).toBe(owner);
  });

  test("a file of another user keeps its mode", async () => {
    await cli.run("migrate");
    const path = join(cli.dataDir, "production.db");
    chmodSync(path, 0o644);
    chownSync(path, owner, process.getgid?.() ?? 0);
    await cli.run("keys list");
    expect(modeOf(path)).toBe(self === 0 ? "644" : "600");
  });
});

describe("one server per data directory", () => {
  const lock = () => join(cli.dataDir, "production.lock");
  /** A second server fails once it has waited for commands that may have the databases open. */
  const expectRejected = () =>
    expect(cli.runSlowly("serve", "--port", "0")).rejects.toThrow(
      `another server is already running on ${cli.dataDir} (production)`,
    );

  const changes = {
    "as it is": () => {},
    removed: (path: string) => rmSync(path),
    "replaced by an empty file"(path: string) {
      rmSync(path);
      writeFileSync(path, "", { mode: 0o600 });
    },
    "replaced by a copy"(path: string) {
      renameSync(path, `${path}.original`);
      copyFileSync(`${path}.original`, path);
    },
  };
  test.each(Object.entries(changes))("a second one fails if the lock file is %s", async (_name, change) => {
    const first = await cli.serve();
    change(lock());
    for (const _ of "12") await expectRejected();
    expect((await cli.run("keys create --name x --plan free")).code).toBe(0);
    await first.stop();
    const next = await cli.serve();
    await expectRejected();
    await next.stop();
  });

  test("a lock file of an earlier version, which is empty, is taken", async () => {
    mkdirSync(cli.dataDir, { mode: 0o700 });
    writeFileSync(lock(), "", { mode: 0o600 });
    await (await cli.serve()).stop();
  });
});

test("a directory that is not writable is reported as doctor does; a read-only file system by what is written", () => {
  // Root may write everywhere.
  const failing = (code: string) => () => {
    throw Object.assign(new Error(code), { code });
  };
  expect(() => rejectUnwritable("/srv/pets", failing("EACCES"))).toThrow(
    "/srv/pets is not writable for the user who runs this command; run the command as the user of the server, or give the directory to that user: chown -R USER /srv/pets",
  );
  expect(() => rejectUnwritable("/srv/pets", failing("EROFS"))).not.toThrow();
  expect(existingParent("/proc/missing/data")).toBe("/proc");
});

test("a path whose bytes are not UTF-8 is refused, instead of used under another name", async () => {
  const parent = cliDirectory();
  const shell = (script: string) => runProgram(["sh", "-c", script, "sh", ...PETSTORE]);
  const data = `DATA="$(printf '${parent}/caf\\351')"`;
  for (const line of [
    '"$@" keys create --name a --plan free --data "$DATA"',
    'PETSTORE_DATA="$DATA" "$@" keys list',
  ])
    expect(await shell(`${data}; ${line}`)).toMatchObject({
      code: 2,
      err: expect.stringContaining("it must be the path of a directory (its name is not UTF-8; rename it)"),
    });
  expect(readdirSync(parent)).toEqual([]);
});
