import { describe, expect, test } from "bun:test";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { directoryAt } from "../data-directory.ts";
import { cleanUpAfterAll, cliDirectory, InProcessCli } from "./cli.ts";

cleanUpAfterAll();

const { files, databaseFiles } = directoryAt("");
/** Every name that a server or a command uses in the directory. */
const NAMES = [...new Set([...Object.values(files), ...databaseFiles])].map((path) =>
  path.replace(/^.*\//, ""),
);

const COMMANDS = [
  "keys list",
  "keys create --name a --plan free",
  "migrate",
  "health",
  "doctor",
  "import -",
  "backup OTHER",
  "restore OTHER --replace",
  "serve --port 0",
];

/** In a directory of another user, who has put links in the place of its files. Only root can give it away. */
function directoryOfOther(path: string): void {
  mkdirSync(path, { recursive: true });
  if (process.getuid?.() === 0) chownSync(path, 65_534, 65_534);
}

describe.each(NAMES)("a link in the place of %s", (name) => {
  test("gets no command to change, fill or create its target", async () => {
    const cli = new InProcessCli();
    const other = cliDirectory();
    cli.input = '{"name":"Rex","categoryId":1}\n';
    await cli.run("keys create --name first --plan free");
    await cli.run(["backup", other]);
    const target = join(other, "target");
    for (const isThere of [true, false]) {
      for (const command of COMMANDS) {
        rmSync(cli.dataDir, { recursive: true });
        directoryOfOther(cli.dataDir);
        symlinkSync(target, join(cli.dataDir, name));
        if (isThere) writeFileSync(target, "precious", { mode: 0o644 });
        const before = isThere ? statSync(target) : undefined;
        const run = await cli.run(command.replace("OTHER", other)).catch((error: unknown) => error);
        expect([command, existsSync(target)]).toEqual([command, isThere]);
        expect(run).not.toMatchObject({ code: 2 });
        if (before === undefined) continue;
        const { mode, uid, gid, ino, mtimeMs } = statSync(target);
        expect([command, run, { mode, uid, gid, ino, mtimeMs }]).toEqual([
          command,
          run,
          { mode: before.mode, uid: before.uid, gid: before.gid, ino: before.ino, mtimeMs: before.mtimeMs },
        ]);
        expect(readFileSync(target, "utf8")).toBe("precious");
      }
      rmSync(target, { force: true });
    }
  });
});

test("a command says that a link is in the place of a database", async () => {
  const cli = new InProcessCli();
  await cli.run("keys create --name first --plan free");
  const [path, target] = [join(cli.dataDir, "production.db"), join(cliDirectory(), "target")];
  writeFileSync(target, readFileSync(path));
  rmSync(path);
  symlinkSync(target, path);
  await expect(cli.run("keys list")).rejects.toThrow(
    `cannot open the database ${path}: it is a symbolic link; only its directory may be one`,
  );
});

test("a data directory that is a link is used like any other", async () => {
  const cli = new InProcessCli({ hasData: false });
  const [real, backups] = [cliDirectory(), cliDirectory()];
  symlinkSync(real, cli.dataDir);
  const server = await cli.serve();
  await cli.run("pets add --name Rex --category 1");
  await server.stop();
  expect(await cli.run(["backup", backups])).toMatchObject({ code: 0 });
  expect(await cli.run(["restore", backups, "--replace"])).toMatchObject({ code: 0 });
  expect(await cli.out("doctor")).toContain("is writable, and only its owner has access");
  expect(await cli.json("pets list")).toMatchObject([{ name: "Rex" }]);
  expect(readdirSync(real)).toContain("production.db");
});
