import { beforeAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { exportRows } from "../../src/archive/export.ts";
import { sqliteIn } from "../../trials/harness/contents.ts";
import { cleanUpAfterAll, InProcessCli, cliDirectory, wrongUsage } from "../cli/cli.ts";
import { createKey } from "../cli/keys.ts";
import { PET_CSV_HEADER, petCsvRow } from "../samples.ts";

cleanUpAfterAll();

const cli = new InProcessCli();
beforeAll(async () => {
  cli.input = "name,categoryId\nRex,7\nMia,8\n";
  await cli.run("import -");
});

const NDJSON = '{"id":1,"name":"Rex","categoryId":7}\n{"id":2,"name":"Mia","categoryId":8}\n';

describe("files", () => {
  test("a file replaces an earlier one when it is complete, and is private", async () => {
    const path = join(cliDirectory(), "pets.ndjson");
    writeFileSync(path, "old", { mode: 0o644 });
    writeFileSync(`${path}.partial`, "left behind");
    const { code, out } = await cli.run(["export", "pets", path]);
    expect(code).toBe(0);
    expect(out).toMatch(/^Exported 2 pets to ".*pets\.ndjson" in \d+\.\d s\.\n$/);
    expect(readFileSync(path, "utf8")).toBe(NDJSON);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(existsSync(`${path}.partial`)).toBeFalse();
  });

  test("one row has a noun in the singular", async () => {
    const one = new InProcessCli();
    await createKey(one);
    const path = join(cliDirectory(), "one.ndjson");
    for (const [kind, noun] of [
      ["keys", "1 key"],
      ["audit", "1 audit entry"],
      ["pets", "0 pets"],
    ] as const)
      expect(await one.out(["export", kind, path])).toStartWith(`Exported ${noun} to `);
  });

  test("the name of the file tells the format", async () => {
    const path = join(cliDirectory(), "pets.csv.gz");
    expect(await cli.json("export", "pets", path)).toMatchObject({ kind: "pets", file: path, rows: 2 });
    expect(gunzipSync(readFileSync(path)).toString()).toBe(
      `${PET_CSV_HEADER}\n${petCsvRow("1", "Rex", "7")}\n${petCsvRow("2", "Mia", "8")}\n`,
    );
  });

  test("a device is not replaced by a file, and neither is a directory", async () => {
    const directory = cliDirectory();
    const link = join(cliDirectory(), "device");
    symlinkSync("/dev/null", link);
    await expect(cli.run(["export", "pets", link])).rejects.toThrow(
      `${link} is not a regular file; leave FILE out and redirect standard output to it`,
    );
    expect(lstatSync(link).isSymbolicLink()).toBeTrue();
    await expect(cli.run(["export", "pets", directory])).rejects.toThrow(
      `${directory} is a directory; name a file in it`,
    );
  });

  test("the name of a directory does not tell the format", async () => {
    const directory = join(cliDirectory(), "old.csv");
    mkdirSync(directory);
    await cli.run(["export", "pets", join(directory, "pets")]);
    expect(readFileSync(join(directory, "pets"), "utf8")).toBe(NDJSON);
  });

  test("standard output has the export and nothing else", async () => {
    for (const line of ["export pets", "export pets -"])
      expect(await cli.run(line)).toEqual({ code: 0, out: NDJSON, err: "" });
    const out = await cli.out("export orders --gzip");
    expect(gunzipSync(Buffer.from(out, "latin1")).toString()).toBe("");
  });
});

test.each([
  ["=cmd|'/C calc'!A0", `"=cmd|'/C calc'!A0"`, `"'=cmd|'/C calc'!A0"`],
  ["@SUM(1)", "@SUM(1)", "'@SUM(1)"],
  ["rex;+1", '"rex;+1"', `"rex;'+1"`],
])(
  "a spreadsheet shows the name %j of an export that is for it as text, and another export has it as it is",
  async (name, cell, escaped) => {
    const own = new InProcessCli();
    own.input = `${JSON.stringify({ name, categoryId: -1 })}\n`;
    await own.run("import -");
    const fileWith = (cell: string) => `${PET_CSV_HEADER}\n${petCsvRow("1", cell, "-1")}\n`;
    expect(await own.out("export pets --format csv")).toBe(fileWith(cell));
    expect(await own.out("export pets --format csv --for-spreadsheets")).toBe(fileWith(escaped));
  },
);

test("keys come without their secrets and hashes", async () => {
  await createKey(cli, "--name", "a,b", "--plan", "free", "--label", "x,y");
  expect(JSON.parse(await cli.out("export keys"))).toEqual({
    id: 1,
    name: "a,b",
    owner: null,
    notes: null,
    labels: ["x", "y"],
    plan: "free",
    perMinute: null,
    perDay: null,
    access: "write",
    createdAt: "2026-11-15T12:00:00.000Z",
    expiresAt: null,
    revokedAt: null,
    disabledAt: null,
  });
  await cli.run("keys disable 1");
  expect(await cli.out("export keys --format csv")).toBe(
    'id,name,owner,notes,labels,plan,perMinute,perDay,access,createdAt,expiresAt,revokedAt,disabledAt\n1,"a,b",,,"[""x"",""y""]",free,,,write,2026-11-15T12:00:00.000Z,,,2026-11-15T12:00:00.000Z\n',
  );
});

test("the audit trail comes with every entry, oldest first, and its values as JSON", async () => {
  const own = new InProcessCli();
  await createKey(own);
  for (let i = 0; i < 60; i++) await own.run(`keys update 1 --owner owner${i}`);
  const lines = (await own.out("export audit")).trimEnd().split("\n");
  expect(lines).toHaveLength(61);
  expect(JSON.parse(lines[60] ?? "")).toEqual({
    id: 61,
    at: "2026-11-15T12:00:00.000Z",
    actor: "command line",
    actorName: "ann",
    operator: null,
    action: "key.updated",
    targetKind: "key",
    targetId: 1,
    valuesBefore: { owner: "owner58" },
    valuesAfter: { owner: "owner59" },
  });
  const [header, , second] = (await own.out("export audit --format csv")).split("\n");
  expect(header).toBe("id,at,actor,actorName,operator,action,targetKind,targetId,valuesBefore,valuesAfter");
  expect(second).toBe(
    '2,2026-11-15T12:00:00.000Z,command line,ann,,key.updated,key,1,"{""owner"":null}","{""owner"":""owner0""}"',
  );
  const path = join(cliDirectory(), "audit.csv");
  expect(await own.out(["export", "audit", path])).toStartWith("Exported 61 audit entries to ");
});

test.each([
  ["export", "export needs KIND: pets, orders, keys or audit"],
  ["export cats", 'KIND is "cats"; it must be pets, orders, keys or audit'],
  ["export pets --for-spreadsheets", "--for-spreadsheets is only for CSV"],
  ["export pets --json", "--json needs FILE: standard output has the export itself"],
])("%s", async (line, err) => {
  expect(await cli.run(line)).toEqual(wrongUsage(err));
});

describe("a large export", () => {
  const COUNT = 14_000;
  const large = new InProcessCli();
  beforeAll(async () => {
    large.input = `name,categoryId\n${`${"Rex".repeat(20)},7\n`.repeat(COUNT)}`;
    expect((await large.run("import -")).code).toBe(0);
  });

  /** The rows, and the rows of each piece with what was reported after it. */
  async function pieces(isGzip: boolean, isStopped = () => false) {
    await using reader = await sqliteIn(large.dataDir).read();
    const found: [rows: number, reported?: number][] = [];
    let isFinished = false;
    const rows = await exportRows({
      reader,
      kind: "pets",
      format: "ndjson",
      isGzip,
      output: {
        async write(data) {
          const text = typeof data === "string" ? data : gunzipSync(data).toString();
          found.push([text.split("\n").length - 1]);
        },
        finish: () => void (isFinished = true),
        close() {},
      },
      onProgress: (done) => void found.at(-1)?.push(done),
      isStopped,
    });
    return { rows, found, isFinished };
  }

  test("is written in pieces of some rows of the database, or for gzip of 1 MiB; each but the last is reported", async () => {
    const pages = Array.from({ length: 7 }, (_, page) => [2_000, (page + 1) * 2_000]);
    expect(await pieces(false)).toEqual({ rows: COUNT, found: pages as never, isFinished: true });
    expect(await pieces(true)).toEqual({ rows: COUNT, found: [[12_000, 12_000], [2_000]], isFinished: true });
  });

  test("stops at a signal, which arrives while rows are read", async () => {
    let signal = false;
    setImmediate(() => (signal = true));
    const { rows, isFinished } = await pieces(false, () => signal);
    expect([rows, isFinished]).toEqual([undefined, false]);
  });
});
