import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DataDirectory } from "../../src/data-directory.ts";
import { makeDirectory } from "../../src/runtime/own-files.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { sqliteTables } from "../../src/store/sqlite/table-store.ts";
import { cleanUpAfterAll, cliDirectory, InProcessCli } from "../cli/cli.ts";
import { recordDurableSteps } from "./durable-steps.ts";

/* Whatever gets its name when it is complete: write → sync → rename → sync of the directory, in this order. */

cleanUpAfterAll();

/** A command line whose data directory has data, and a directory of its own. */
async function withData() {
  const cli = new InProcessCli();
  await succeed(cli, "keys create --name test --plan pro");
  const directory = cliDirectory();
  return { cli, directory, inData: (name: string) => join(cli.dataDir, name) };
}

async function succeed(cli: InProcessCli, line: string): Promise<void> {
  const { code, err } = await cli.run(line);
  if (code !== 0) throw new Error(err);
}

interface Case {
  /** The files of src that name the file. */
  readonly by: readonly string[];
  /** Prepares the work that names files. */
  prepare(): Promise<() => unknown>;
  /** Matches the names that files get, each followed by a space. */
  readonly named: RegExp;
}

const EMPTY_USE = { rescue: { onFailure() {} } };

/** Everything that gets a name when it is complete. */
const CASES: Readonly<Record<string, Case>> = {
  backup: {
    by: ["archive/backup.ts"],
    async prepare() {
      const { cli, directory } = await withData();
      return () => succeed(cli, `backup ${directory}`);
    },
    named: /^production-\S+Z\.db $/,
  },
  "restore that replaces": {
    by: ["archive/restore-target.ts"],
    async prepare() {
      const { cli, directory } = await withData();
      await succeed(cli, `backup ${directory}`);
      return () => succeed(cli, `restore ${directory} --replace`);
    },
    named: /^production-replaced-\S+\.db production\.db $/,
  },
  export: {
    by: ["archive/files.ts"],
    async prepare() {
      const { cli, directory } = await withData();
      return () => succeed(cli, `export keys ${directory}/keys.ndjson`);
    },
    named: /^keys\.ndjson $/,
  },
  "the first start of a server": {
    by: ["cli/commands/serve.ts", "data-directory.ts", "operator/sign-in/token.ts"],
    prepare: async () => async () => {
      await using _ = await new InProcessCli().serve();
    },
    named: /^(?=.*production-first-key )(?=.*production-admin-token )(?=.*production-url )/,
  },
  "a configuration as a file, and the secrets of one that is applied": {
    by: ["cli/commands/declared/apply.ts", "cli/commands/declared/export-config.ts"],
    async prepare() {
      const { cli, directory } = await withData();
      const file = `${directory}/other.yaml`;
      writeFileSync(file, "keys: [{ id: shop, name: shop, plan: pro }]");
      return async () => {
        await succeed(cli, `export config ${directory}/config.yaml`);
        await succeed(cli, `apply ${file} --secrets-file ${directory}/secrets.txt`);
      };
    },
    named: /^config\.yaml secrets\.txt $/,
  },
  login: {
    by: ["cli/login-file.ts"],
    async prepare() {
      const secret = "pet_admin_0123456789abcdefghijklmnopqrstuvwxyz";
      const server = await new InProcessCli().serve([], { PETSTORE_ADMIN_TOKEN: secret });
      const [cli, home] = [new InProcessCli(), cliDirectory()];
      cli.secret = `${secret}\n`;
      return () => cli.run(`login ${server.adminUrl}`, { PETSTORE_DATA: "", HOME: home });
    },
    named: /^login\.json $/,
  },
  "the timeline of PostgreSQL": {
    by: ["data-directory.ts"],
    async prepare() {
      const directory = new DataDirectory({ path: cliDirectory(), environment: "production" });
      return () => directory.latestTimeline.raise({ number: 2, mark: "m" });
    },
    named: /^production-timeline $/,
  },
  "a database that was deleted under a server": {
    by: ["store/sqlite/open-files.ts"],
    async prepare() {
      const path = join(cliDirectory(), "a.db");
      const rescue = { ...EMPTY_USE.rescue, to: `${path}.rescued`, onRescue() {} };
      const { clientStore, close } = openSqlite(path, { rescue });
      await clientStore.createPet({ name: "Rex", categoryId: 1n }, 0);
      rmSync(path);
      return close;
    },
    named: /^a\.db\.rescued $/,
  },
  "counts that were deleted under a server": {
    by: ["store/sqlite/quota-store.ts"],
    async prepare() {
      const path = join(cliDirectory(), "limits.db");
      const clientStore = openQuotaStore(path, { ...EMPTY_USE.rescue, onRescue() {} });
      rmSync(path);
      return () => clientStore.close();
    },
    named: /^limits\.db\.rescued limits\.db $/,
  },
  "a backup of PostgreSQL": {
    by: ["store/sqlite/table-store.ts"],
    async prepare() {
      const target = await sqliteTables(join(cliDirectory(), "copy.db")).create();
      await target.complete({});
      return () => target.publish({});
    },
    named: /^copy\.db $/,
  },
};

test.each(Object.entries(CASES))(
  "%s: each file is on the disk before it has its name, and then its name is",
  async (_, { prepare, named }) => {
    const work = await prepare();
    using steps = recordDurableSteps();
    await work();
    expect(steps.faults()).toEqual([]);
    expect(steps.named.map((name) => `${name} `).join("")).toMatch(named);
  },
);

test("a backup is on the disk with its checksum", async () => {
  const { cli, directory } = await withData();
  using steps = recordDurableSteps();
  await succeed(cli, `backup ${directory}`);
  expect(steps.unsyncedIn(directory)).toEqual([".production.lock"]);
});

test("a directory that is made has its name on the disk, and those above it", () => {
  const above = cliDirectory();
  using steps = recordDurableSteps();
  makeDirectory(join(above, "backups/here"));
  expect([above, join(above, "backups")].map(steps.hasSynced)).toEqual([true, true]);
});

test("rejected rows are on the disk when the import is complete", async () => {
  const { cli, directory } = await withData();
  cli.input = "name,categoryId\nRex,seven\n";
  using steps = recordDurableSteps();
  await cli.run(`import - --max-errors 10 --rejects ${directory}/rejected.csv`);
  expect([steps.unsyncedIn(directory), steps.hasSynced(directory)]).toEqual([[], true]);
  expect(readdirSync(directory)).toEqual(["rejected.csv"]);
});

test("every file of src that names what is complete is in the table, and nothing else syncs or renames", () => {
  const src = join(import.meta.dir, "../../src");
  const code = [...new Glob("**/*.ts").scanSync(src)].map((path) => ({
    path,
    text: readFileSync(join(src, path), "utf8"),
  }));
  const own = new Set(["runtime/own-files.ts", "store/sqlite/durable-files.ts"]);
  const others = code.filter(({ path }) => !own.has(path));
  const names = "replaceFile|renameDurably|publishDatabase|link";
  const imported = new RegExp(
    `import \\{[^}]*\\b(?:${names})\\b[^}]*\\} from "[^"]*(?:own|durable)-files\\.ts"`,
  );
  const naming = others.filter(({ text }) => imported.test(text));
  const inTable = Object.values(CASES).flatMap(({ by }) => by);
  expect(naming.map(({ path }) => path).toSorted()).toEqual([...new Set(inTable)].toSorted());
  const bare = others.filter(({ text }) =>
    /\b(?:f(?:data)?sync|rename|link)(?:Sync)?\b[^;]*\} from "node:fs/.test(text),
  );
  expect(bare.map(({ path }) => path)).toEqual([]);
});
