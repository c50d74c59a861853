import { afterAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { SQL } from "bun";
import { join } from "node:path";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";
import { EnvironmentInUse } from "../../../src/store/postgres/environment-lock.ts";
import { lockPostgres } from "../../../src/store/postgres/table-store.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { fillData } from "../../archive/sample-data.ts";
import { until } from "../../timing.ts";
import { cleanUp, cliDirectory, InProcessCli, type Result } from "../../cli/cli.ts";

setDefaultTimeout(60_000);
afterAll(cleanUp);

const filled = new InProcessCli();
await fillData(filled.dataDir, 20);
const backups = cliDirectory();
await filled.run(["backup", backups]);
const backup = join(backups, "production-2026-11-15T12-00-00Z.db");

let url: string;
let onPostgres: string[];
let sql: SQL;
beforeEach(async () => {
  url = await postgresUrl();
  onPostgres = ["--database-url", url];
  sql = new SQL(url, { max: 4, bigint: true });
});

const restore = (): Promise<Result> =>
  new InProcessCli().run(["restore", backup, "--replace", ...onPostgres]);

/** The gate that `stretch` closes, as a number of an advisory lock. */
const GATE = 4711;

/** Makes each restore wait right before it renames the tables. The result opens the gate. */
async function stretchRename(): Promise<() => Promise<void>> {
  await sql.unsafe(`
    CREATE FUNCTION public.wait_at_gate() RETURNS event_trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(${GATE}); END';
    CREATE EVENT TRIGGER gate ON ddl_command_start WHEN TAG IN ('ALTER SCHEMA')
      EXECUTE FUNCTION public.wait_at_gate()`);
  const gate = await sql.reserve();
  await gate`SELECT pg_advisory_lock(${GATE})`;
  return async () => {
    await gate`SELECT pg_advisory_unlock(${GATE})`;
    gate.release();
  };
}

/** Resolves when a session with such a name waits for a lock. */
async function untilWaiting(name: string): Promise<void> {
  const select = () => sql`SELECT FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database() AND starts_with(application_name, ${name})`;
  await until(async () => (await select()).length > 0, 30_000);
}

const petIds = async (schema: string): Promise<readonly number[]> =>
  (await sql.unsafe<{ id: bigint }[]>(`SELECT id FROM ${schema}.pets ORDER BY id`)).map(({ id }) =>
    Number(id),
  );

/** Creates a pet as a server of release 1.3 does, which takes no lock of the environment. */
function earlierServer() {
  const connection = { application_name: "petstore production 1.3.0", search_path: "production" };
  const server = new SQL(url, { max: 1, connection });
  return {
    async create(name: string) {
      await server`INSERT INTO pets (name, category_id) VALUES (${name}, 1)`;
    },
    close: () => server.close({ timeout: 0 }),
  };
}

test("no server starts and no command writes while a restore replaces the tables; nothing that was acknowledged is lost", async () => {
  expect(await restore()).toMatchObject({ code: 0 });
  const before = await petIds("production");
  const open = await stretchRename();
  const restoring = restore();
  await untilWaiting("petstore production_copy");
  const refused = /petstore restore is replacing its tables; run this again when that is done/;
  const cli = new InProcessCli();
  await expect(cli.serve(onPostgres)).rejects.toThrow(refused);
  const add = ["pets", "add", "--name", "x", "--category", "1", ...onPostgres];
  await expect(cli.run(add)).rejects.toThrow(refused);
  await open();
  expect(await restoring).toMatchObject({ code: 0 });
  const added: number[] = [];
  for (let i = 0; i < 20; i++) added.push(Number((await cli.json<{ id: string }>(...add)).id));
  expect(await petIds("production")).toEqual([...before, ...added]);
  expect(new Set([...before, ...added]).size).toBe(before.length + 20);
});

test("a restore that finds a session of an earlier release once nobody can write gives up", async () => {
  expect(await restore()).toMatchObject({ code: 0 });
  const before = await petIds("production");
  const server = earlierServer();
  const reader = await sql.reserve();
  await reader`BEGIN`;
  await reader`LOCK TABLE production.pets IN ACCESS SHARE MODE`;
  const restoring = restore();
  await untilWaiting("petstore production_copy");
  // The restore has looked for sessions, and waits for the lock of a table that somebody else has.
  const created = server.create("acknowledged");
  await untilWaiting("petstore production 1.3.0");
  await reader`COMMIT`;
  reader.release();
  const { code, err } = await restoring;
  expect({ code, err: err.replace(/PostgreSQL at .*;/, "PostgreSQL;") }).toEqual({
    code: 1,
    err: "1 session of Petstore in production use PostgreSQL; stop all servers first",
  });
  await created;
  expect(await petIds("production")).toHaveLength(before.length + 1);
  await server.close();
});

test("a statement that waits while the tables are replaced writes to those that replace them", async () => {
  expect(await restore()).toMatchObject({ code: 0 });
  const before = await petIds("production");
  const open = await stretchRename();
  const restoring = restore();
  await untilWaiting("petstore production_copy");
  const server = earlierServer();
  const created = server.create("acknowledged");
  await untilWaiting("petstore production 1.3.0");
  await open();
  expect(await restoring).toMatchObject({ code: 0 });
  await created;
  expect(await petIds("production")).toHaveLength(before.length + 1);
  await server.close();
});

/** The session that holds the lock of the environment. */
async function holder() {
  const [found] = await sql<{ pid: number; mode: string }[]>`
    SELECT pid, mode FROM pg_locks WHERE locktype = 'advisory' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  return found;
}

test("a process that loses the lock with its session takes it again, and a restore that does gives up", async () => {
  const production = { url, schema: "production" };
  const stores = await openPostgres(url, { schema: "production" });
  const shared = await holder();
  expect(shared?.mode).toBe("ShareLock");
  await sql`SELECT pg_terminate_backend(${shared?.pid ?? 0})`;
  await until(async () => ((await holder())?.pid ?? shared?.pid) !== shared?.pid, 10_000);
  expect((await holder())?.mode).toBe("ShareLock");
  await expect(lockPostgres(production)).rejects.toBeInstanceOf(EnvironmentInUse);
  await stores.close();

  await using lock = await lockPostgres(production);
  await lock.confirm();
  const alone = await holder();
  expect(alone?.mode).toBe("ExclusiveLock");
  await sql`SELECT pg_terminate_backend(${alone?.pid ?? 0})`;
  await until(async () => (await holder()) === undefined, 10_000);
  await expect(lock.confirm()).rejects.toBeInstanceOf(EnvironmentInUse);
});
