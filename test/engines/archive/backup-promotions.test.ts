import { afterAll, expect, spyOn, test } from "bun:test";
import { SQL } from "bun";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../../package.json";
import { makeBackup } from "../../../src/archive/backup.ts";
import { fillNewTables } from "../../../src/archive/fill-tables.ts";
import { scheduler } from "../../../src/runtime/scheduler.ts";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";
import { inspectDatabase } from "../../../src/store/sqlite/snapshot.ts";
import { sqliteTables } from "../../../src/store/sqlite/table-store.ts";
import { postgresIn } from "../../../trials/harness/contents.ts";
import { promote, startPostgres, startStandby } from "../../../trials/harness/postgres.ts";
import { addPet } from "../../conformance/store-fixture.ts";
import { dataIn } from "../../data-directory.ts";
import { cleanUpAfterAll, cliDirectory, InProcessCli } from "../../cli/cli.ts";

cleanUpAfterAll();

const first = await startPostgres();
const second = await startStandby(first);
afterAll(() => Promise.all([first.stop(), second.stop()]));

/** The URL of several servers, as libpq writes it. The one that is replaced comes first. */
const both = first.url.replace(/@([^/]+)/, `@$1,${new URL(second.url).host}`);
const cli = new InProcessCli({ hasData: false });
const backups = cliDirectory();
const files = () => readdirSync(backups).filter((name) => name.startsWith("production"));

/** Backs up as cron would, and returns the number of pets in the backup. */
async function petsInBackup(): Promise<number> {
  cli.clock.advance(1_000);
  const { path } = await cli.json<{ path: string }>("backup", backups, "--database-url", both);
  return inspectDatabase(path).rows["pets"] ?? 0;
}

async function addPets(url: string, count: number): Promise<void> {
  const { clientStore, close } = await openPostgres(url, { schema: "production" });
  for (let i = 0; i < count; i++) await addPet(clientStore);
  await close();
}

test("a backup does not wait for a synchronous standby that is lost, and is recorded", async () => {
  await addPets(both, 3);
  // The data directory of a server knows which primary was used last.
  mkdirSync(cli.dataDir);
  expect(await petsInBackup()).toBe(3);
  await second.kill();
  const startedAt = performance.now();
  expect(await petsInBackup()).toBe(3);
  // A commit that waits for the standby would take until it is back.
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  await using sql = new SQL(first.url, { max: 1 });
  const [row] = await sql`SELECT value FROM production.server_settings WHERE name = 'last-backup'`;
  expect(row).toEqual({ value: String(cli.clock.now()) });
  await second.restart();
});

test("of a server that is replaced meanwhile there is no backup", async () => {
  await using source = await postgresIn(both).read();
  const to = join(cliDirectory(), "backup.db");
  const beforePublish = () => promote(second);
  await expect(fillNewTables({ source, to: sqliteTables(to), beforePublish })).rejects.toThrow(
    `${new URL(second.url).host}/postgres has replaced ${new URL(first.url).host}/postgres as the primary meanwhile`,
  );
  expect([existsSync(to), existsSync(`${to}.copy`)]).toEqual([false, false]);
});

test("after a promotion, a backup has what the new primary has, though the old one runs and comes first", async () => {
  await addPets(second.url, 4);
  expect(await petsInBackup()).toBe(7);
  // Nor is the old one used when the new one is gone.
  await second.kill();
  const before = files();
  await expect(petsInBackup()).rejects.toThrow("was the primary before another server was promoted");
  expect(files()).toEqual(before);
  await second.restart();
  expect(await petsInBackup()).toBe(7);
});

/** Freezes the server. From then on, two minutes take two seconds; what it does before has all its time. */
function freezingInFastTime(server: Pick<typeof second, "freeze">) {
  let speed = 1;
  const timers = spyOn(scheduler, "setTimeout").mockImplementation((work, ms) =>
    setTimeout(work, ms / speed),
  );
  return {
    freeze() {
      server.freeze();
      speed = 60;
    },
    [Symbol.dispose]: () => timers.mockRestore(),
  };
}

test("a server that stops responding ends a backup, which leaves nothing", async () => {
  using freezing = freezingInFastTime(second);
  const directory = cliDirectory();
  const backup = makeBackup({
    location: dataIn(cli.dataDir, second.url),
    directory,
    keep: undefined,
    at: cli.clock.now(),
    version,
    onProgress: ({ step }) => step === "copying" && freezing.freeze(),
    onUnrecorded: () => {},
  });
  await expect(backup).rejects.toThrow("no response within 125000 ms");
  expect(readdirSync(directory)).toEqual([".production.lock"]);
  second.thaw();
});

test("a server that stops responding ends a restore", async () => {
  const server = await startPostgres();
  const source = new InProcessCli();
  expect(await source.run("pets add --name Rex --category 7")).toMatchObject({ code: 0 });
  await using reader = await sqliteTables(join(source.dataDir, "production.db")).read();
  using freezing = freezingInFastTime(server);
  const filling = fillNewTables({
    source: reader,
    to: postgresIn(server.url),
    onProgress: () => freezing.freeze(),
  });
  await expect(filling).rejects.toThrow("no response within 125000 ms");
  server.thaw();
  await server.stop();
}, 60_000);

test("after a restore over the data of a primary with a standby, every process uses the primary as before", async () => {
  const one = await startPostgres();
  const two = await startStandby(one, { isSynchronous: false });
  const hosts = one.url.replace(/@([^/]+)/, `@$1,${new URL(two.url).host}`);
  const cli = new InProcessCli();
  const run = (line: string, as = cli) => as.run([...line.split(" "), "--database-url", hosts]);
  expect(await run("migrate")).toMatchObject({ code: 0 });
  expect(await run("keys create --name app --plan free")).toMatchObject({ code: 0 });
  const backups = cliDirectory();
  expect(await run(`backup ${backups}`)).toMatchObject({ code: 0 });
  expect(await run(`restore ${backups} --replace`)).toMatchObject({ code: 0 });
  for (const as of [cli, new InProcessCli()]) expect(await run("keys list", as)).toMatchObject({ code: 0 });
  await Promise.all([one.stop(), two.stop()]);
}, 60_000);
