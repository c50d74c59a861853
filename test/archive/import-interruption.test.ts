import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUp, InProcessCli, ROOT, spawnTracked, temporaryDirectory } from "../cli/cli.ts";

// A busy machine takes long.
setDefaultTimeout(60_000);
afterAll(cleanUp);

function file(content: string | Uint8Array): string {
  const path = join(temporaryDirectory(), "pets.csv");
  writeFileSync(path, content);
  return path;
}

const namesIn = async (cli: InProcessCli) =>
  (await cli.run(["export", "pets", "--format", "csv"])).out
    .split("\n")
    .slice(1, -1)
    .map((row) => row.split(",")[1]);

describe("an import that is interrupted", () => {
  // Several batches, and several of the pieces that a file is read in.
  const pets = Array.from({ length: 6_000 }, (_, i) => `${"pet ".repeat(25)}${i}`);
  const path = file(`name,categoryId\n${pets.map((name) => `${name},7\n`).join("")}`);

  /** Runs first in a process of its own, and kills it when its import has stored a part of the rows. */
  const KILL = `
    import { Database } from "bun:sqlite";
    setInterval(() => {
      try {
        using database = new Database(process.argv.at(-1) + "/production.db", { readonly: true });
        if (database.query("SELECT max(rows_done) AS rows FROM imports").get().rows > 0) {
          process.kill(process.pid, "SIGKILL");
        }
      } catch {
        // The database or the table does not exist yet.
      }
    }, 1);`;

  test("continues after SIGKILL with what was not stored, and doubles nothing", async () => {
    const cli = new InProcessCli();
    const cwd = temporaryDirectory();
    writeFileSync(join(cwd, "kill.ts"), KILL);
    const command = [process.execPath, "--preload", "./kill.ts", join(ROOT, "src/cli/main.ts")];
    const child = spawnTracked([...command, "import", path, "--data", cli.dataDir], { cwd });
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    const { code, out } = await cli.run(["import", path]);
    expect(code).toBe(0);
    expect(out).toMatch(/^warning: continuing the import of \S+ after [\d,]+ rows\n/);
    expect(await namesIn(cli)).toEqual(pets);
    expect((await cli.run(["import", path])).out).toContain("Nothing was done");
  });

  test("ends after a stop signal with a batch and a message", async () => {
    const cli = new InProcessCli();
    const stopSignal = async () => "SIGINT" as const;
    expect(await cli.run(["import", path], {}, { stopSignal })).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /^interrupted after [\d,]+ rows of \S+; run the same command again to continue$/,
      ),
    });
    expect((await cli.run(["import", path])).code).toBe(0);
    expect(await namesIn(cli)).toEqual(pets);
  });
});

test("the same command with --again continues after an interruption and doubles nothing", async () => {
  const cli = new InProcessCli();
  const path = file("name,categoryId\nRex,1\nMia,x\nLuna,2\n");
  await cli.run(["import", path]);
  await cli.run(["import", path, "--again", "--max-errors", "0", "--rejects", `${path}.2`]);
  const { out } = await cli.run(["import", path, "--again", "--rejects", `${path}.2`]);
  expect(out).toContain(`continuing the import of ${path} after 2 rows`);
  expect(await namesIn(cli)).toEqual(["Rex", "Luna", "Rex", "Luna"]);
});

test("a damaged file says how many of its rows are imported", async () => {
  const rows = Array.from({ length: 40_000 }, (_, i) => `pet ${i},7\n`).join("");
  const path = file(Buffer.concat([Buffer.from(`name,categoryId\n${rows}`), Uint8Array.of(0xe9, 0x0a)]));
  const cli = new InProcessCli();
  const { code, err } = await cli.run(["import", path]);
  expect(code).toBe(1);
  const stored = (await namesIn(cli)).length;
  expect(stored).toBeGreaterThan(0);
  expect(err).toBe(
    `cannot import all of ${path}: it is not UTF-8; convert it first, for example with iconv; its first ${stored.toLocaleString("en")} rows are imported, so import the others from another file`,
  );
});

test("a file of rejected rows that was shortened meanwhile is left as it is; a missing one begins anew", async () => {
  const cli = new InProcessCli();
  const path = file("name,categoryId\nRex,x\nMia,y\nLuna,z\n");
  const rejects = `${path}.rejects`;
  await cli.run(["import", path, "--max-errors", "1"]);
  writeFileSync(rejects, "name,categoryId\nRex,1\n");
  expect((await cli.run(["import", path])).err).toBe(
    `"${rejects}" has changed since the import stopped; move it away or choose another file with --rejects for the next rejected rows`,
  );
  expect(readFileSync(rejects, "utf8")).toBe("name,categoryId\nRex,1\n");
  renameSync(rejects, `${path}.corrected`);
  expect((await cli.run(["import", path])).err).toContain("3 rows were rejected");
  expect(readFileSync(rejects, "utf8")).toBe(
    "name,categoryId,error\nLuna,z,line 4: categoryId must be an integer from -2^63 to 2^63 - 1\n",
  );
});

test("rejected rows go to a regular file only", async () => {
  const { code, err } = await new InProcessCli().run(["import", file("Rex,x\n"), "--rejects", "/dev/null"]);
  expect({ code, err }).toEqual({
    code: 1,
    err: '"/dev/null" is not a regular file; choose another one with --rejects',
  });
});

test("messages show no control characters of a file or its name", async () => {
  const cli = new InProcessCli();
  const { out } = await cli.run(["import", file("name,\u001bcategoryId\nRex,x\n")]);
  expect(out).toContain("line 2: \\u{1b}categoryId must be an integer");
  expect((await cli.run(["import", "\u001bc"])).err).toBe("cannot import \\u{1b}c: there is no such file");
});
