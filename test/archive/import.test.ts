import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { cleanUpAfterAll, failure, InProcessCli, ROOT, spawnTracked, cliDirectory } from "../cli/cli.ts";
import { PET_CSV_HEADER, petCsvRow } from "../samples.ts";

cleanUpAfterAll();

let cli: InProcessCli;
beforeEach(() => void (cli = new InProcessCli()));

const HEADER = "name,categoryId,status\n";

/** Writes a file to a directory of its own. */
function file(name: string, content: string | Uint8Array): string {
  const path = join(cliDirectory(), name);
  writeFileSync(path, content);
  return path;
}

const importFile = (path: string, ...flags: string[]) => cli.run(["import", path, ...flags]);
const errorOf = (path: string, ...flags: string[]) => cli.err(["import", path, ...flags]);
const summaryOf = (path: string, ...flags: string[]) => cli.json("import", path, ...flags);

const stored = async () => (await cli.out("export pets --format csv")).split("\n").slice(1, -1);
const storedNames = async () => (await stored()).map((row) => row.split(",")[1]);

describe("formats", () => {
  test.each<[string, string | Uint8Array]>([
    ["pets.csv", `${HEADER}Rex,9007199254740993,sold\n"Mia ""M""",-1,\n`],
    ["pets.txt", '\ufeffstatus;name;category_id\nsold;Rex;9007199254740993\n;"Mia ""M""";-1\n'],
    [
      "pets.ndjson",
      '{"name":"Rex","categoryId":9007199254740993,"status":"sold"}\n{"name":"Mia \\"M\\"","categoryId":-1}\n',
    ],
    ["pets.csv.gz", gzipSync(`${HEADER}Rex,9007199254740993,sold\n"Mia ""M""",-1,\n`)],
    // Two members, as `cat a.gz b.gz` makes them.
    [
      "two.gz",
      Buffer.concat([gzipSync(`${HEADER}Rex,9007199254740993,sold\n`), gzipSync('"Mia ""M""",-1,\n')]),
    ],
  ])("%s", async (name, content) => {
    const { code, out } = await importFile(file(name, content));
    expect(code).toBe(0);
    expect(out).toMatch(/^Imported pets of .* into production \(data: .*\)\.\n\n {2}Rows +2\n {2}Added +2\n/);
    expect(await stored()).toEqual([
      petCsvRow("1", "Rex", "9007199254740993", "sold"),
      petCsvRow("2", '"Mia ""M"""', "-1"),
    ]);
  });

  test("standard input", async () => {
    cli.input = `${HEADER}Rex,7,\n`;
    expect((await importFile("-")).out).toStartWith("Imported pets of standard input into production ");
    expect(await stored()).toEqual([petCsvRow("1", "Rex", "7")]);
  });

  test.each<[string, string | Uint8Array, string]>([
    [
      "latin1.csv",
      Uint8Array.of(0x6e, 0xe4, 0x0a),
      "it is not UTF-8; convert it first, for example with iconv",
    ],
    ["pets.json", "\n[{}]", "it is a JSON array; write each of its objects on a line of its own"],
    ["pets.gz", gzipSync("x".repeat(500)).subarray(0, 20), "its gzip data is incomplete or damaged"],
    ["pets.csv", "Rex,7\n", "line 1 must be a header that names the columns name, categoryId; it lacks"],
  ])("%s that cannot be read", async (name, content, reason) => {
    const { code, err } = await importFile(file(name, content));
    expect([code, err]).toEqual([1, expect.stringMatching(/^cannot import /)]);
    expect(err).toContain(reason);
    expect(err).not.toContain("this is a bug");
  });

  test("an empty file has no rows", async () => {
    expect(await summaryOf(file("pets.csv", ""))).toMatchObject({ rows: 0, added: 0 });
  });
});

describe("usage", () => {
  test.each([
    [
      ["--on-conflict", "skip"],
      "--on-conflict skip needs --keep-ids: identifiers that are assigned never exist",
    ],
    [["--max-errors", "-1"], "--max-errors"],
  ])("%j", async (flags, message) => {
    const { code, err } = await importFile(file("pets.csv", ""), ...flags);
    expect(code).toBe(2);
    expect(err).toContain(message);
  });

  test("a file that does not exist, and a directory", async () => {
    const path = join(cliDirectory(), "none.csv");
    expect(await errorOf(path)).toBe(`cannot import ${path}: there is no such file`);
    expect(await errorOf(cliDirectory())).toEndWith(": it is a directory");
  });
});

describe("rejected rows", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, i) => `pet ${i},x,\n`).join("");

  test("they go to a file with their errors; corrected, it can be imported", async () => {
    const path = file("pets.csv", `${HEADER}Rex,7,\nMia,x,sold\n ,8,gone\n`);
    const { code, out, err } = await importFile(path);
    expect(code).toBe(1);
    expect(err).toBe(`2 rows were rejected; "${path}.rejects" has them with their errors`);
    expect(out).toContain("warning: line 3: categoryId must be an integer from -2^63 to 2^63 - 1\n");
    const rejects = readFileSync(`${path}.rejects`, "utf8");
    expect(rejects).toMatch(
      /^name,categoryId,status,error\nMia,x,sold,line 3: categoryId .*\n ,8,gone,"line 4: name .*; status .*"\n$/,
    );
    expect(statSync(`${path}.rejects`).mode & 0o777).toBe(0o600);
    expect(await importFile(path)).toMatchObject({ code: 1, err });

    const corrected = file("corrected.csv", rejects.replace("Mia,x", "Mia,9").replace(" ,8,gone", "Luna,8,"));
    expect((await importFile(corrected)).code).toBe(0);
    expect(await stored()).toEqual([
      petCsvRow("1", "Rex", "7"),
      petCsvRow("2", "Mia", "9", "sold"),
      petCsvRow("3", "Luna", "8"),
    ]);
  });

  test("--max-errors stops the import, and a higher one continues it", async () => {
    const path = file("pets.csv", `${HEADER}Rex,7,\n${rows(4)}Mia,7,\n`);
    const first = await importFile(path, "--max-errors", "2");
    expect(first.code).toBe(1);
    expect(first.err).toBe(
      `stopped after 4 rows of ${path}: 3 rows were rejected, and --max-errors is 2; "${path}.rejects" has them with their errors; a higher --max-errors continues the import`,
    );
    expect(await errorOf(path, "--max-errors", "2")).toBe(first.err);
    const { out } = await importFile(path, "--max-errors", "4");
    expect(out).toContain(`continuing the import of ${path} after 4 rows`);
    expect(await stored()).toEqual([petCsvRow("1", "Rex", "7"), petCsvRow("2", "Mia", "7")]);
    const lines = readFileSync(`${path}.rejects`, "utf8").match(/(?<=line )\d/g);
    expect(lines).toEqual(["3", "4", "5", "6"]);
  });

  test("a file of rejected rows is not overwritten", async () => {
    const path = file("pets.csv", `${HEADER}Rex,x,\n`);
    writeFileSync(`${path}.rejects`, "mine");
    expect(await errorOf(path)).toBe(
      `"${path}.rejects" has the rejected rows of another import; move it away or choose another file with --rejects`,
    );
    const other = `${path}.other`;
    expect(await new InProcessCli().run(["import", path, "--rejects", other])).toMatchObject({ code: 1 });
    expect(existsSync(other)).toBeTrue();
    expect(readFileSync(`${path}.rejects`, "utf8")).toBe("mine");
  });
});

describe("--dry-run", () => {
  test("checks the rows and stores nothing, also without a database", async () => {
    rmSync(cli.dataDir, { recursive: true });
    const path = file("pets.csv", `${HEADER}Rex,7,\nMia,x,\n`);
    const { code, out, err } = await importFile(path, "--dry-run");
    expect([code, err]).toEqual([1, "1 row was rejected"]);
    expect(out).toContain(
      `Checked pets of ${path} for production (data: ${cli.dataDir}). Nothing was stored.\n`,
    );
    expect(existsSync(cli.dataDir)).toBeFalse();
    expect(existsSync(`${path}.rejects`)).toBeFalse();
  });

  test("without a database, an identifier that is repeated is no conflict, wherever it is in the file", async () => {
    rmSync(cli.dataDir, { recursive: true });
    const path = file("pets.csv", "id,name,categoryId\n1,Rex,7\n1,Mia,7\n");
    expect(await importFile(path, "--keep-ids", "--dry-run")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/Added +2\n/),
    });
  });

  test("finds conflicts with stored pets", async () => {
    const path = file("pets.csv", "id,name,categoryId\n1,Rex,7\n");
    expect((await importFile(path, "--keep-ids")).code).toBe(0);
    const again = file("more.csv", "ID,name,categoryId\n1,Rex,7\n2,Mia,7\n");
    const { out } = await importFile(again, "--keep-ids", "--dry-run");
    expect(out).toContain("warning: line 2: ID is 1, which exists already\n");
    expect(await stored()).toEqual([petCsvRow("1", "Rex", "7")]);
  });
});

describe("importing a file again", () => {
  test("a complete import is not repeated, unless --again asks for it", async () => {
    const path = file("pets.csv", `${HEADER}Rex,7,\n`);
    expect(await summaryOf(path)).toMatchObject({ isComplete: true, importedBefore: false, added: 1 });
    const copy = file("copy.csv", `${HEADER}Rex,7,\n`);
    const { code, out } = await importFile(copy);
    expect(code).toBe(0);
    expect(out).toContain(
      "before, at 2026-11-15T12:00:00.000Z. Nothing was done; --again imports it again.\n\n  Rows   1\n  Added  1\n",
    );
    expect(await summaryOf(path)).toMatchObject({ importedBefore: true });
    expect(await summaryOf(path, "--again")).toMatchObject({ importedBefore: false, added: 1 });
    expect(await stored()).toHaveLength(2);
  });

  test("an import goes on with the options that it began with", async () => {
    const path = file("pets.csv", "id,name,categoryId\n5,Rex,7\n6,Mia,x\n");
    await importFile(path, "--keep-ids", "--max-errors", "0");
    expect(await errorOf(path)).toBe(
      `an import of ${path} with other options (--keep-ids) stopped after 2 rows; continue with those, or add --again to import it from its beginning`,
    );
  });

  test("a file that has changed since a part of it was imported is refused", async () => {
    const path = file("pets.csv", `${HEADER}Rex,7,\nMia,x,\n`);
    await importFile(path, "--max-errors", "0");
    writeFileSync(path, `${HEADER}Rex,7,\nMia,8,\n`);
    expect(await errorOf(path)).toStartWith(
      `${path} has changed since an import of it stopped after 2 rows; `,
    );
    expect(await stored()).toHaveLength(1);
  });
});

describe("identifiers", () => {
  test("an export is imported to the same bytes", async () => {
    const pets = file(
      "pets.csv",
      [
        PET_CSV_HEADER,
        petCsvRow("2", "Rex", "9223372036854775807", "pending"),
        petCsvRow("3", '" =1+1, ""x""\r\n"', "-5"),
        petCsvRow("4611686018427387904", "日本 🐕", "0", "sold"),
        "",
      ].join("\n"),
    );
    expect((await importFile(pets, "--keep-ids")).code).toBe(0);
    const other = new InProcessCli();
    for (const format of ["csv", "ndjson"]) {
      const exported = join(cliDirectory(), `pets.${format}.gz`);
      expect((await cli.run(["export", "pets", exported])).code).toBe(0);
      const rule = format === "csv" ? [] : ["--on-conflict", "replace"];
      expect((await other.run(["import", exported, "--keep-ids", ...rule])).code).toBe(0);
      const before = await cli.run(["export", "pets", "--format", format]);
      expect(await other.run(["export", "pets", "--format", format])).toEqual(before);
    }
    expect((await cli.run(["export", "pets", "--format", "csv"])).out).toBe(readFileSync(pets, "utf8"));
  });

  test("rows whose identifiers exist are replaced or skipped, and counted, or rejected, each an error", async () => {
    const path = file("pets.csv", "id,name,categoryId\n1,a,7\n2,b,7\n2,c,7\n");
    const importOnto = async (...flags: string[]) => {
      cli = new InProcessCli();
      await importFile(file("first.csv", "id,name,categoryId\n1,Rex,7\n"), "--keep-ids");
      return importFile(path, "--keep-ids", ...flags);
    };
    for (const [rule, counts] of [
      ["replace", { added: 1, replaced: 2, skipped: 0 }],
      ["skip", { added: 1, replaced: 0, skipped: 2 }],
    ] as const) {
      const { out } = await importOnto("--on-conflict", rule, "--json");
      expect(JSON.parse(out)).toMatchObject({ rows: 3, rejected: 0, ...counts });
    }
    expect((await importOnto("--max-errors", "1")).err).toStartWith(
      `stopped after 3 rows of ${path}: 2 rows were rejected, and --max-errors is 1; `,
    );
  });

  test("the audit trail names the file and the counts", async () => {
    const path = file("pets.csv", `${HEADER}Rex,7,\n`);
    await importFile(path);
    expect(await cli.json("audit")).toMatchObject([
      {
        actor: { kind: "command line", name: "ann" },
        action: "data.imported",
        target: null,
        after: { kind: "pets", source: path, added: 1, replaced: 0, skipped: 0, rejected: 0 },
      },
    ]);
  });
});

describe("an import that is interrupted", () => {
  // Several batches, and several of the pieces that a file is read in.
  const pets = Array.from({ length: 6_000 }, (_, i) => `${"pet ".repeat(25)}${i}`);
  const path = file("many.csv", `name,categoryId\n${pets.map((name) => `${name},7\n`).join("")}`);

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
    const cwd = cliDirectory();
    writeFileSync(join(cwd, "kill.ts"), KILL);
    const command = [process.execPath, "--preload", "./kill.ts", join(ROOT, "src/cli/main.ts")];
    const child = spawnTracked([...command, "import", path, "--data", cli.dataDir], { cwd });
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    const { code, out } = await importFile(path);
    expect(code).toBe(0);
    expect(out).toMatch(/^warning: continuing the import of \S+ after [\d,]+ rows\n/);
    expect(await storedNames()).toEqual(pets);
    expect((await importFile(path)).out).toContain("Nothing was done");
  });

  test("ends after a stop signal with a batch and a message", async () => {
    const stopSignal = async () => "SIGINT" as const;
    expect(await cli.run(["import", path], {}, { stopSignal })).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /^interrupted after [\d,]+ rows of \S+; run the same command again to continue$/,
      ),
    });
    expect((await importFile(path)).code).toBe(0);
    expect(await storedNames()).toEqual(pets);
  });
});

test("the same command with --again continues after an interruption and doubles nothing", async () => {
  const path = file("pets.csv", "name,categoryId\nRex,1\nMia,x\nLuna,2\n");
  await importFile(path);
  await importFile(path, "--again", "--max-errors", "0", "--rejects", `${path}.2`);
  const { out } = await importFile(path, "--again", "--rejects", `${path}.2`);
  expect(out).toContain(`continuing the import of ${path} after 2 rows`);
  expect(await storedNames()).toEqual(["Rex", "Luna", "Rex", "Luna"]);
});

test("a damaged file says how many of its rows are imported", async () => {
  const rows = Array.from({ length: 40_000 }, (_, i) => `pet ${i},7\n`).join("");
  const path = file(
    "pets.csv",
    Buffer.concat([Buffer.from(`name,categoryId\n${rows}`), Uint8Array.of(0xe9, 0x0a)]),
  );
  const { code, err } = await importFile(path);
  expect(code).toBe(1);
  const count = (await storedNames()).length;
  expect(count).toBeGreaterThan(0);
  expect(err).toBe(
    `cannot import all of ${path}: it is not UTF-8; convert it first, for example with iconv; the import stopped after ${count.toLocaleString("en")} rows, so import the others from another file`,
  );
});

test("a file of rejected rows that was shortened meanwhile is left as it is; a missing one begins anew", async () => {
  const path = file("pets.csv", "name,categoryId\nRex,x\nMia,y\nLuna,z\n");
  const rejects = `${path}.rejects`;
  await importFile(path, "--max-errors", "1");
  writeFileSync(rejects, "name,categoryId\nRex,1\n");
  expect(await errorOf(path)).toBe(
    `"${rejects}" has changed since the import stopped; move it away or choose another file with --rejects for the next rejected rows`,
  );
  expect(readFileSync(rejects, "utf8")).toBe("name,categoryId\nRex,1\n");
  renameSync(rejects, `${path}.corrected`);
  expect(await errorOf(path)).toContain("3 rows were rejected");
  expect(readFileSync(rejects, "utf8")).toBe(
    "name,categoryId,error\nLuna,z,line 4: categoryId must be an integer from -2^63 to 2^63 - 1\n",
  );
});

test("rejected rows go to a regular file only", async () => {
  const result = await importFile(file("pets.csv", "Rex,x\n"), "--rejects", "/dev/null");
  expect(result).toEqual(failure('"/dev/null" is not a regular file; choose another one with --rejects'));
});

test("messages show no control characters of a file or its name", async () => {
  const { out } = await importFile(file("pets.csv", "name,\u001bcategoryId\nRex,x\n"));
  expect(out).toContain("line 2: \\u{1b}categoryId must be an integer");
  expect(await errorOf("\u001bc")).toBe("cannot import \\u{1b}c: there is no such file");
});
