import { afterAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { postgresUrl } from "../../../harness/postgres.ts";
import { cleanUp, petstore, spawnPetstore, temporaryDirectory } from "../../cli/cli.ts";
import { serve } from "../../cli/server-process.ts";

afterAll(cleanUp);

const PETS = 60_000;

function petsFile(count = PETS): string {
  const path = join(temporaryDirectory(), "pets.csv");
  const rows = Array.from({ length: count }, (_, i) => `pet ${i + 1},${i},\n`);
  writeFileSync(path, `name,categoryId,status\n${rows.join("")}`);
  return path;
}

const result = async (child: ReturnType<typeof spawnPetstore>) => {
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
};

/** Resolves when the import has stored rows. */
async function untilRowsAreStored(data: string): Promise<void> {
  for (;;) {
    try {
      using database = new Database(join(data, "production.db"), { readonly: true });
      const row = database.query<{ rows: number }, []>("SELECT max(rows_done) AS rows FROM imports").get();
      if ((row?.rows ?? 0) > 0) return;
    } catch {
      // The database or the table does not exist yet.
    }
    await Bun.sleep(5);
  }
}

async function expectAllPets(data: string): Promise<void> {
  const { out } = await petstore("export", "pets", "--format", "csv", "--data", data);
  const expected = Array.from({ length: PETS }, (_, i) => `${i + 1},pet ${i + 1},${i},`);
  expect(out.split("\n").slice(1, -1)).toEqual(expected);
}

describe("an import that is interrupted", () => {
  test("continues after SIGKILL with what was not stored, and doubles nothing", async () => {
    const [path, data] = [petsFile(), temporaryDirectory()];
    const first = spawnPetstore(["import", path, "--data", data]);
    await untilRowsAreStored(data);
    first.kill("SIGKILL");
    await first.exited;
    const { code, err } = await petstore("import", path, "--data", data);
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringMatching(/^petstore: continuing the import of \S+ after [\d,]+ rows\n/),
    });
    await expectAllPets(data);
    expect((await petstore("import", path, "--data", data)).out).toContain("Nothing was done");
    await expectAllPets(data);
  }, 60_000);

  test("ends after SIGINT with a batch and a message", async () => {
    const [path, data] = [petsFile(), temporaryDirectory()];
    const child = spawnPetstore(["import", path, "--data", data]);
    await untilRowsAreStored(data);
    child.kill("SIGINT");
    const { code, err } = await result(child);
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        /^petstore: interrupted after [\d,]+ rows of \S+; run the same command again to continue\n$/,
      ),
    });
    expect((await petstore("import", path, "--data", data)).code).toBe(0);
    await expectAllPets(data);
  }, 60_000);
});

describe("beside a running server", () => {
  test.each(["SQLite", "PostgreSQL"])(
    "on %s it shows the pets within a second, and no stale page",
    async (engine) => {
      const data = temporaryDirectory();
      const database = engine === "SQLite" ? [] : ["--database-url", await postgresUrl()];
      const server = await serve(data, ...database, "--free-limits", "1000000/1000000");
      const headers = { Authorization: `Bearer ${server.secret}` };
      const get = async (path: string) => (await fetch(server.url + path, { headers })).text();
      const paths = ["/pets", "/pets?limit=100", "/pets?status=sold", "/pets?id=1"];
      for (const path of paths) for (let i = 0; i < 4; i++) expect(await get(path)).toBe("[]");

      const file = join(temporaryDirectory(), "pets.ndjson");
      const pets = Array.from(
        { length: 200 },
        (_, i) => `{"name":"pet ${i}","categoryId":1,"status":"sold"}\n`,
      );
      writeFileSync(file, pets.join(""));
      expect((await petstore("import", file, "--data", data, ...database)).code).toBe(0);
      const importedAt = performance.now();
      for (const path of paths) {
        while ((await get(path)) === "[]") expect(performance.now() - importedAt).toBeLessThan(5_000);
      }
      expect(JSON.parse(await get("/pets?limit=100"))).toHaveLength(100);

      // Cached pages are replaced, too.
      for (let i = 0; i < 4; i++) await get("/pets?limit=2");
      const corrected = join(temporaryDirectory(), "corrected.csv");
      writeFileSync(corrected, "id,name,categoryId\n1,Rex,7\n");
      const flags = ["--keep-ids", "--on-conflict", "replace", "--data", data, ...database];
      expect((await petstore("import", corrected, ...flags)).code).toBe(0);
      const replacedAt = performance.now();
      while (!(await get("/pets?limit=2")).includes("Rex")) {
        expect(performance.now() - replacedAt).toBeLessThan(5_000);
      }
      expect(await get("/pets?id=1")).toBe('[{"id":1,"name":"Rex","categoryId":7}]');
      await server.stop("SIGTERM");
    },
    60_000,
  );
});

test("standard input that was imported before is not imported again", async () => {
  const data = temporaryDirectory();
  const run = () => petstore("import", "-", "--data", data, "--json");
  expect(JSON.parse((await run()).out)).toMatchObject({ importedBefore: false, rows: 0 });
  expect(JSON.parse((await run()).out)).toMatchObject({ importedBefore: true, rows: 0 });
});
