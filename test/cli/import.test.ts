import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUpAfterAll, cliDirectory, InProcessCli } from "./cli.ts";

cleanUpAfterAll();

test("an import prints its first ten rejected rows, and what has become of the rows", async () => {
  const cli = new InProcessCli();
  const path = join(cliDirectory(), "pets.csv");
  const write = (...rows: readonly string[]) =>
    writeFileSync(path, `id,name,categoryId\n${rows.join("\n")}\n`);
  write("1,Rex,7");
  const nothing = { replaced: 0, skipped: 0, rejected: 0, rejects: null };
  const first = {
    ...nothing,
    kind: "pets",
    isComplete: true,
    rows: 1,
    added: 1,
    seconds: expect.any(Number),
  };
  expect(await cli.json("import", path, "--keep-ids")).toEqual({
    ...first,
    isDryRun: false,
    importedBefore: false,
  });
  write("1,Max,7", "2,Tom,8", "3,Zoe,9", ...Array.from({ length: 11 }, () => "x,Luna,7"));
  const shown = Array.from(
    { length: 10 },
    (_, n) => `warning: line ${n + 5}: id must be an integer from -2^63 to 2^63 - 1\n`,
  ).join("");
  const place = `production (data: ${cli.dataDir})`;
  const replaced = await cli.run(["import", path, "--keep-ids", "--on-conflict", "replace"]);
  expect({ ...replaced, out: replaced.out.replace(/\d+\.\d s, [\d,]+ rows/, "N s, N rows") }).toEqual({
    code: 1,
    out: `${shown}Imported pets of ${path} into ${place}.

  Rows      14
  Added     2
  Replaced  1
  Rejected  11
  Time      N s, N rows/s
`,
    err: `11 rows were rejected; "${path}.rejects" has them with their errors`,
  });

  const summaryOf = async (...flags: string[]) => {
    const skip = ["--keep-ids", "--on-conflict", "skip", "--json"];
    const { code, out, err } = await cli.run(["import", path, ...skip, ...flags]);
    expect(code).toBe(1);
    return { ...JSON.parse(out.replace(shown, "")), err };
  };
  const counts = {
    kind: "pets",
    isComplete: true,
    rows: 14,
    added: 0,
    replaced: 0,
    skipped: 3,
    rejected: 11,
  };
  const rejects = join(cliDirectory(), "rejects");
  const err = "11 rows were rejected";
  const made = { ...counts, isDryRun: false, importedBefore: false, seconds: expect.any(Number), err };
  expect(await summaryOf("--again", "--dry-run")).toEqual({ ...made, isDryRun: true, rejects: null });
  const where = `; "${rejects}" has them with their errors`;
  expect(await summaryOf("--again", "--rejects", rejects)).toEqual({ ...made, rejects, err: err + where });
  expect(await summaryOf("--rejects", rejects)).toEqual({
    ...made,
    importedBefore: true,
    seconds: 0,
    rejects,
    err: err + where,
  });
});
