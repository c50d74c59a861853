import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { bearer } from "../../bearer.ts";
import { version } from "../../../package.json";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import {
  createKey,
  isOfOutage,
  runPetstore,
  startPetstore,
  succeed,
} from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { freePort } from "../../../trials/harness/server.ts";
import { until } from "../../timing.ts";
import { expectNothingLost, startLoad, untilMoreCreates } from "./load.ts";

// Servers start and stop several times, on a machine that may be busy.
setDefaultTimeout(120_000);

/** What a later release may do while this one runs: add a column to every table, a table and an index. */
const newColumn = (table: string) => `ALTER TABLE ${table} ADD COLUMN of_a_later_release TEXT`;
const ADDITIONS = [
  "CREATE TABLE later_things (id INTEGER PRIMARY KEY)",
  "CREATE INDEX pets_by_category_later ON pets (category_id, id)",
];
const recordStep = (step: number, oldestRelease: string) =>
  `INSERT INTO schema_migrations (version, name, oldest_release) VALUES (${step}, 'later', '${oldestRelease}')`;

interface Tables {
  /** The flags that name the storage. */
  readonly storage: readonly string[];
  readonly names: () => Promise<readonly string[]>;
  readonly run: (sql: string) => Promise<void>;
}

/** Migrates the tables under load as a later release does, restarts this one, and ends with tables that it rejects. */
async function expectServesNewerTables({ storage, names, run }: Tables): Promise<void> {
  await succeed("migrate", ...storage);
  const { key } = await createKey(storage);
  const flags = [...storage, "--port", `${freePort()}`, "--max-connections-per-address", "0"];
  const start = () => startPetstore(flags);
  const before = await start();
  const post = (path: string, body: string) =>
    fetch(before.url + path, {
      method: "POST",
      headers: {
        ...bearer(key),
        "Content-Type": "application/json",
        "Idempotency-Key": path,
      },
      body,
    });
  expect((await post("/pets", '{"name":"Rex","categoryId":1}')).status).toBe(201);
  const load = startLoad(
    Array.from({ length: 20 }, () => before.url),
    key,
  );
  await untilMoreCreates(load);

  for (const sql of [...(await names()).map(newColumn), ...ADDITIONS, recordStep(900, "1.0.0")])
    await run(sql);
  await untilMoreCreates(load);
  expect(await before.stop()).toBe(0);
  const after = await start();
  await untilMoreCreates(load);
  await until(async () => (await post("/store/orders", '{"petId":1}')).status === 201, 10_000);
  await expectNothingLost(load, after.url, key);
  expect(await after.stop()).toBe(0);
  const errors = [...before.log, ...after.log].filter(({ level }) => level === "error");
  const events = errors.filter((line) => !isOfOutage(line));
  expect(events.map(({ text }) => text)).toEqual([]);
  const command = (line: string) => runPetstore(...line.split(" "), ...storage);
  for (const line of ["keys list", "keys disable 1", "orders list", "usage", "audit", "export pets"])
    expect({ line, ...(await command(line)) }).toMatchObject({ line, code: 0, err: "" });

  await run(recordStep(901, "999.1.0"));
  for (const line of ["serve --port 0", "keys list", "export pets"]) {
    const { code, err } = await command(line);
    expect({ line, code }).toEqual({ line, code: 1 });
    expect(err).toContain(`the tables need petstore 999.1.0 or newer; this is petstore ${version}`);
  }
}

test("SQLite: this release serves on tables of a later release that say so, and names the release that others need", async () => {
  const data = temporaryDirectory("data");
  const open = (name: string) => {
    const database = new Database(join(data, name));
    database.run("PRAGMA busy_timeout = 10000");
    return database;
  };
  const storeNames = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
  await expectServesNewerTables({
    storage: ["--data", data],
    async names() {
      using limits = open("production-limits.db");
      limits.run(newColumn("standings"));
      limits.run("ALTER TABLE schema_migrations ADD COLUMN of_a_later_release TEXT");
      using store = open("production.db");
      return store
        .query<{ name: string }, []>(storeNames)
        .all()
        .map(({ name }) => name);
    },
    async run(sql) {
      using store = open("production.db");
      store.run(sql);
    },
  });
});

test("PostgreSQL: this release serves on tables of a later release that say so, and names the release that others need", async () => {
  const url = await postgresUrl();
  await using sql = new SQL(url, { max: 1 });
  await expectServesNewerTables({
    storage: ["--database-url", url, "--data", temporaryDirectory("data")],
    async names() {
      await sql`SET search_path = production`;
      const rows: { name: string }[] = await sql`
        SELECT tablename AS name FROM pg_tables WHERE schemaname = 'production'`;
      return rows.map(({ name }) => name);
    },
    run: async (statement) => void (await sql.unsafe(statement)),
  });
});
