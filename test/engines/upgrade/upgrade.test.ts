import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { sendBurst } from "../../../trials/harness/api-client.ts";
import { Child, runProgram } from "../../../trials/harness/child.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { createKey, PETSTORE, type PetstoreServer, startPetstore } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { freePort, freePorts } from "../../../trials/harness/server.ts";
import { bearer } from "../../bearer.ts";
import { until } from "../../timing.ts";
import { upgradedDataCases } from "./data-cases.ts";
import { expectNothingLost, startLoad, untilMoreCreates } from "./load.ts";
import {
  type EarlierRelease,
  earlierProgram,
  fixtureData,
  fixtureSql,
  PREVIOUS_RELEASE,
  readRecorded,
} from "./previous-release.ts";

// Servers start and stop several times, on a machine that may be busy.
setDefaultTimeout(120_000);

const PATIENT = ["--max-connections-per-address", "0"];

const previous = earlierProgram(PREVIOUS_RELEASE);

/** The URL of a PostgreSQL database with what an earlier release stored. */
async function fixtureDatabase(release: EarlierRelease): Promise<string> {
  const url = await postgresUrl();
  const sql = new SQL(url, { max: 1 });
  await sql.unsafe(fixtureSql(release)).simple();
  // The clock of the database counts quotas, so they were used just now.
  const later = `extract(epoch FROM now()) * 1000 - ${readRecorded("postgres", release).at}`;
  await sql.unsafe(`UPDATE production.quotas SET expires_at = expires_at + ${later}, numbers = (
    SELECT array_agg(CASE WHEN number > 1e12 THEN number + ${later} ELSE number END ORDER BY place)
    FROM unnest(numbers) WITH ORDINALITY AS numbers (number, place))`);
  await sql.end();
  return url;
}

describe.each(["1.3.0"] as const)("data of release %s on PostgreSQL", (release) =>
  upgradedDataCases("postgres", release, async () => ({
    data: [temporaryDirectory("data")],
    "database-url": [await fixtureDatabase(release)],
  })),
);

const petstore = (storage: readonly string[], line: string) =>
  runProgram([...PETSTORE, ...line.split(" "), ...storage]);

/** Runs a command that has to succeed. On a slow machine its standard error has its progress. */
async function succeed(storage: readonly string[], line: string): Promise<string> {
  const { code, out, err } = await petstore(storage, line);
  if (code !== 0) throw new Error(`petstore ${line}: ${err}`);
  return out;
}

/** A create that every server repeats. */
const ONCE = {
  method: "POST",
  headers: { "Content-Type": "application/json", "Idempotency-Key": "on-every-release" },
  body: '{"name":"On every release","categoryId":1}',
};

/** Creates a pet until there is a response: a server that has just started may need another attempt. */
async function createOnce(url: string, key: string) {
  let created: unknown;
  await until(async () => {
    const response = await fetch(`${url}/pets`, { ...ONCE, headers: { ...ONCE.headers, ...bearer(key) } });
    if (response.status !== 201) return false;
    created = { body: await response.text(), isReplayed: response.headers.has("idempotent-replayed") };
    return true;
  }, 10_000);
  return created;
}

/** The servers show within two seconds what a command changes. */
async function expectFollow(urls: readonly string[], key: string, storage: readonly string[]): Promise<void> {
  for (const name of ["Max", "Rex"]) {
    await succeed(storage, `pets update 1 --name ${name}`);
    for (const url of urls) {
      const firstPet = async () => (await fetch(`${url}/pets?limit=1`, { headers: bearer(key) })).text();
      await until(async () => (await firstPet()).includes(`"name":"${name}"`), 2_000);
    }
  }
}

/** The releases that run one after the other, on the data of the previous one. */
const RELEASES = [PETSTORE, previous, PETSTORE];

/** Kills a migration in the transaction that has taken all steps. A server of the previous release runs meanwhile. */
async function killMigration(path: string): Promise<void> {
  using database = new Database(path);
  database.run("PRAGMA busy_timeout = 1000");
  const migration = new Child([process.execPath, join(import.meta.dir, "endless-migration.ts"), path]);
  const isLocked = async () => {
    try {
      database.run("BEGIN IMMEDIATE; ROLLBACK");
      return false;
    } catch {
      return true;
    }
  };
  await until(isLocked, 30_000);
  await migration.stop("SIGKILL");
  expect(database.query("SELECT max(version) AS version FROM schema_migrations").get()).toEqual({
    version: 25,
  });
}

test("SQLite under load, upgraded, set back and upgraded again, after a migration that was killed: nothing is lost, doubled or stale", async () => {
  const storage = ["--data", fixtureData(PREVIOUS_RELEASE)];
  const flags = [...storage, "--port", `${freePort()}`, ...PATIENT];
  const key = readRecorded("sqlite", PREVIOUS_RELEASE).secrets.load;
  let server = await startPetstore(flags, [], previous);
  const load = startLoad(
    Array.from({ length: 20 }, () => server.url),
    key,
  );
  const once = await createOnce(server.url, key);
  await untilMoreCreates(load);
  await killMigration(join(storage[1] ?? "", "production.db"));
  await untilMoreCreates(load);

  for (const program of RELEASES) {
    expect(await server.stop()).toBe(0);
    server = await startPetstore(flags, [], program);
    await untilMoreCreates(load);
    expect(await createOnce(server.url, key)).toEqual({ ...Object(once), isReplayed: true });
    await expectFollow([server.url], key, storage);
  }
  await expectNothingLost(load, server.url, key);
  expect(await server.stop()).toBe(0);
});

test("PostgreSQL under load, two servers upgraded one after the other, set back and upgraded again, after a migration that was killed: every request succeeds, nothing is lost, doubled or stale, limits hold", async () => {
  const url = await fixtureDatabase(PREVIOUS_RELEASE);
  const storage = ["--database-url", url, "--data", temporaryDirectory("data")];
  const key = readRecorded("postgres", PREVIOUS_RELEASE).secrets.load;
  const ports = freePorts(2);
  const start = (port: number, program: readonly string[]): Promise<PetstoreServer> =>
    startPetstore(
      ["--database-url", url, ...PATIENT, "--data", temporaryDirectory("data"), "--port", `${port}`],
      [],
      program,
    );
  const servers = await Promise.all(ports.map((port) => start(port, previous)));
  const urls = servers.map((server) => server.url);
  const load = startLoad(urls, key);
  const once = await createOnce(urls[0] ?? "", key);
  await untilMoreCreates(load);

  await using sql = new SQL(url, { max: 2 });
  const isTaken = async (step: number) =>
    (await sql`SELECT FROM production.schema_migrations WHERE version = ${step}`).length > 0;
  // The second step waits for this transaction, so the migration is killed between two steps.
  await sql.begin(async (tx) => {
    await tx`SELECT count(*) FROM production.quotas`;
    const migration = new Child([...PETSTORE, "migrate", ...storage]);
    await until(() => isTaken(28), 30_000);
    await migration.stop("SIGKILL");
  });
  expect(await isTaken(29)).toBe(false);
  await untilMoreCreates(load);

  for (const program of RELEASES) {
    for (const index of [0, 1]) {
      expect(await servers[index]?.stop()).toBe(0);
      servers[index] = await start(ports[index] ?? 0, program);
      await untilMoreCreates(load);
      for (const each of urls)
        expect(await createOnce(each, key)).toEqual({ ...Object(once), isReplayed: true });
      await expectFollow(urls, key, storage);
      const free = await createKey(storage, "free");
      const responses = await sendBurst(ports, free.key, 200);
      // Release 1.3.0 lets each server allow the limit if another one waits for PostgreSQL.
      const mostAllowed = program === PETSTORE && index === 1 ? 60 : 120;
      expect(responses.filter(({ status }) => status === 200).length).toBeWithin(60, mostAllowed + 1);
    }
  }
  for (const each of urls) await expectNothingLost(load, each, key);
  // The load tries the other server if a connection is refused, or if PostgreSQL is too busy (503).
  const statuses = new Set(load.attempts.map(({ status }) => status));
  expect([...statuses].filter((status) => ![0, 200, 201, 503].includes(status))).toEqual([]);
  await Promise.all(servers.map((server) => server.stop()));
});

/** Reads the entries of migrations. */
async function migrationsIn(storage: readonly string[]) {
  return JSON.parse(await succeed(storage, "audit --action database.migrated --json"));
}

interface Storage {
  readonly storage: readonly string[];
  readonly version: number;
  /** Runs a statement on the tables. */
  readonly run: (statement: string) => Promise<void>;
}

const NOW = {
  sqlite: "unixepoch('subsec') * 1000",
  postgres: "extract(epoch FROM clock_timestamp()) * 1000",
};

/** What commands of this release do while a server of the previous one runs, which can use the tables of this one. */
async function expectMigrates(engine: keyof typeof NOW, { storage, version, run }: Storage): Promise<void> {
  const server = await startPetstore([...storage, "--port", "0"], [], previous);
  for (const line of ["keys list", "keys create --name new --plan pro", "export pets"]) {
    const { code, err } = await petstore(storage, line);
    expect({ line, code }).toEqual({ line, code: 1 });
    expect(err).toContain(
      "petstore serve migrates them when it starts, and so does petstore migrate; nothing was changed",
    );
  }
  const planned = await petstore(storage, "migrate --dry-run");
  expect(planned).toMatchObject({ code: 0, err: "" });
  expect(planned.out).toMatch(/^STEP +SERVERS OF 1\.3\.0$/m);
  expect(planned.out).not.toContain("must stop");

  // It looks as if a server ran that this release knows nothing of.
  const report = `INSERT INTO servers (id, report, reported_at) VALUES ('a', '{"version":"1.2.9"}', ${NOW[engine]})
    ON CONFLICT (id) DO UPDATE SET reported_at = excluded.reported_at`;
  await run(report);
  const reporting = setInterval(() => void run(report), 300);
  const refused = await petstore(storage, "migrate").finally(() => clearInterval(reporting));
  expect(refused.code).toBe(1);
  expect(refused.err).toContain("or newer, and a server of an earlier release is running; stop it first,");
  expect(await petstore(storage, "migrate --dry-run")).toEqual(planned);
  await run("DELETE FROM servers WHERE id = 'a'");

  expect(await succeed(storage, "migrate")).toMatch(
    new RegExp(`^Migrated the tables of production \\(.+\\) from version ${version} to \\d+:`),
  );
  const [entry, ...others] = await migrationsIn(storage);
  expect(others).toEqual([]);
  expect(entry).toMatchObject({ actor: { kind: "command line" }, before: { schemaVersion: version } });
  expect(await succeed(storage, "migrate")).toContain("are up to date");
  expect((await fetch(server.url.replace(/v1$/, "healthz"))).status).toBe(200);
  expect(await server.stop()).toBe(0);
}

test("SQLite: only petstore migrate and a start change tables of an earlier release, while servers run that can use the new ones", async () => {
  const data = fixtureData(PREVIOUS_RELEASE);
  using database = new Database(join(data, "production.db"));
  database.run("PRAGMA busy_timeout = 10000");
  await expectMigrates("sqlite", {
    storage: ["--data", data],
    version: 25,
    run: async (statement) => void database.run(statement),
  });
});

test("PostgreSQL: only petstore migrate and a start change tables of an earlier release, while servers run that can use the new ones", async () => {
  const url = await fixtureDatabase(PREVIOUS_RELEASE);
  await using sql = new SQL(url, { max: 1 });
  await sql`SET search_path = production`;
  await expectMigrates("postgres", {
    storage: ["--database-url", url, "--data", temporaryDirectory("data")],
    version: 27,
    run: async (statement) => void (await sql.unsafe(statement)),
  });
});

test("a server that migrates says so in its log and in the audit trail", async () => {
  const storage = ["--database-url", await fixtureDatabase(PREVIOUS_RELEASE)];
  const server = await startPetstore([...storage, "--port", "0"]);
  const lines = server.log.filter(({ event }) => event === "database.migrated");
  expect(lines.map(({ text }) => JSON.parse(text))).toMatchObject([{ from: 27 }]);
  expect(await migrationsIn(storage)).toMatchObject([
    { actor: { kind: "server" }, before: { schemaVersion: 27 } },
  ]);
  await server.stop();
});
