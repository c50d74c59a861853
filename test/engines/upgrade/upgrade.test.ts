import { runProgram } from "../../../trials/harness/child.ts";
import { SQL } from "bun";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { sendBurst } from "../../../trials/harness/api-client.ts";
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
  await sql.end();
  return url;
}

describe.each(["1.1.0", "1.2.0"] as const)("data of release %s on PostgreSQL", (release) =>
  upgradedDataCases("postgres", release, async () => ({
    data: [temporaryDirectory("data")],
    "database-url": [await fixtureDatabase(release)],
  })),
);

test("SQLite under load: this release starts on the data of the one before, which then starts on its tables, and nothing is lost", async () => {
  const flags = [
    "--data",
    fixtureData(PREVIOUS_RELEASE),
    "--port",
    `${freePort()}`,
    "--max-connections-per-address",
    "0",
  ];
  const key = readRecorded("sqlite", PREVIOUS_RELEASE).secrets.load;
  const before = await startPetstore(flags, [], previous);
  const urls = Array.from({ length: 20 }, () => before.url);
  const load = startLoad(urls, key);
  await untilMoreCreates(load);

  expect(await before.stop()).toBe(0);
  const after = await startPetstore(flags);
  await untilMoreCreates(load);
  expect(await after.stop()).toBe(0);
  const undone = await startPetstore(flags, [], previous);
  await untilMoreCreates(load);
  await expectNothingLost(load, undone.url, key);
  // Its caches follow the commands of this release.
  const firstPet = async () => {
    const headers = bearer(key);
    return (await fetch(`${undone.url}/pets?limit=1`, { headers })).text();
  };
  expect(await firstPet()).toContain('"name":"Rex"');
  await succeed(flags.slice(0, 2), "pets update 1 --name Max");
  await until(async () => (await firstPet()).includes('"name":"Max"'), 1_000);
  expect(await undone.stop()).toBe(0);
});

test("two servers on PostgreSQL, replaced one after the other under load, and back: every request succeeds, nothing is lost, limits hold", async () => {
  const storage = ["--database-url", await fixtureDatabase(PREVIOUS_RELEASE)];
  const key = readRecorded("postgres", PREVIOUS_RELEASE).secrets.load;
  const ports = freePorts(2);
  const start = (port: number, program: readonly string[]): Promise<PetstoreServer> =>
    startPetstore(
      [...storage, ...PATIENT, "--data", temporaryDirectory("data"), "--port", `${port}`],
      [],
      program,
    );
  const servers = await Promise.all(ports.map((port) => start(port, previous)));
  const urls = servers.map(({ url }) => url);
  const load = startLoad(urls, key);
  await untilMoreCreates(load);

  // After the first of them, both releases serve from the migrated tables; the last undoes a half of it.
  const replacements = [
    [0, PETSTORE, 120],
    [1, PETSTORE, 60],
    [0, previous, 120],
  ] as const;
  for (const [index, program, mostAllowed] of replacements) {
    expect(await servers[index]?.stop()).toBe(0);
    servers[index] = await start(ports[index] ?? 0, program);
    await untilMoreCreates(load);
    const free = await createKey(storage, "free");
    const responses = await sendBurst(ports, free.key, 200);
    expect(responses.filter(({ status }) => status === 200).length).toBeWithin(60, mostAllowed + 1);
  }
  for (const url of urls) await expectNothingLost(load, url, key);
  // The load tries the other server if a connection is refused, or if PostgreSQL is too busy (503).
  const statuses = new Set(load.attempts.map(({ status }) => status));
  expect([...statuses].filter((status) => ![0, 200, 201, 503].includes(status))).toEqual([]);
  await Promise.all(servers.map((server) => server.stop()));
});

const petstore = (storage: readonly string[], line: string) =>
  runProgram([...PETSTORE, ...line.split(" "), ...storage]);

/** Runs a command that has to succeed. On a slow machine its standard error has its progress. */
async function succeed(storage: readonly string[], line: string): Promise<string> {
  const { code, out, err } = await petstore(storage, line);
  if (code !== 0) throw new Error(`petstore ${line}: ${err}`);
  return out;
}

/** What the commands of this release do while a server of 1.1.0 runs, which cannot use the tables of this release. */
async function expectMigratesNotUnder(server: PetstoreServer, storage: readonly string[]): Promise<void> {
  for (const line of ["keys list", "keys create --name new --plan pro", "export pets"]) {
    const { code, err } = await petstore(storage, line);
    expect({ line, code }).toEqual({ line, code: 1 });
    expect(err).toContain(
      "petstore serve migrates them when it starts, and so does petstore migrate; nothing was changed",
    );
  }
  const planned = await petstore(storage, "migrate --dry-run");
  expect(planned).toMatchObject({ code: 0, err: "" });
  expect(planned.out).toMatch(/^STEP +SERVERS OF 1\.1\.0$/m);
  // What stops them at one step stops them at every later one.
  expect(planned.out).toMatch(/^\d+ +must stop /m);
  expect(planned.out).not.toMatch(/^\d+ +must stop [^]*^\d+ +go on /m);
  const refused = await petstore(storage, "migrate");
  expect(refused.code).toBe(1);
  expect(refused.err).toContain("or newer, and a server of an earlier release is running; stop it first,");
  expect(await petstore(storage, "migrate --dry-run")).toEqual(planned);
  expect((await fetch(server.url.replace(/v1$/, "healthz"))).status).toBe(200);
}

/** Reads the entries of migrations. */
async function migrationsIn(storage: readonly string[]) {
  return JSON.parse(await succeed(storage, "audit --action database.migrated --json"));
}

test("SQLite: commands change no tables of an earlier release, whose server runs; petstore migrate does without it", async () => {
  const storage = ["--data", fixtureData("1.1.0")];
  const server = await startPetstore([...storage, "--port", "0"], [], earlierProgram("1.1.0"));
  await expectMigratesNotUnder(server, storage);
  expect(await server.stop()).toBe(0);
  expect(await succeed(storage, "migrate")).toMatch(
    /^Migrated the tables of production \(data: .+\) from version 13 to \d+:/,
  );
  const [entry, ...others] = await migrationsIn(storage);
  expect(others).toEqual([]);
  expect(entry).toMatchObject({ actor: { kind: "command line" }, before: { schemaVersion: 13 } });
  expect(await succeed(storage, "migrate")).toContain("are up to date");
});

test("PostgreSQL: neither serve nor a command changes tables that running servers need, and --force does", async () => {
  const storage = ["--database-url", await fixtureDatabase("1.1.0"), "--data", temporaryDirectory("data")];
  const server = await startPetstore([...storage, "--port", "0"], [], earlierProgram("1.1.0"));
  await expectMigratesNotUnder(server, storage);
  const served = await petstore(storage, "serve --port 0");
  expect(served.code).toBe(1);
  expect(served.err).toContain("a server of an earlier release is running");
  await succeed(storage, "migrate --force");
  expect(await migrationsIn(storage)).toMatchObject([{ before: { schemaVersion: 15 } }]);
  await server.stop();
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

test("PostgreSQL: a registered server of an earlier release blocks the steps that it cannot go on after", async () => {
  const storage = [
    "--database-url",
    await fixtureDatabase(PREVIOUS_RELEASE),
    "--data",
    temporaryDirectory("data"),
  ];
  await succeed(storage, "migrate");
  await using sql = new SQL(storage[1] ?? "", { max: 1 });
  await sql`SET search_path = production`;
  // The tables look as if those of the release before already had that of servers.
  await sql`DELETE FROM schema_migrations WHERE version > 21`;
  const report = JSON.stringify({ version: "1.1.5" });
  const beat = async () => {
    await sql`INSERT INTO servers (id, report, reported_at)
      VALUES ('a', ${report}, extract(epoch FROM statement_timestamp()) * 1000)
      ON CONFLICT (id) DO UPDATE SET reported_at = excluded.reported_at`;
  };
  await beat();
  const beating = setInterval(() => void beat(), 300);
  const refused = await petstore(storage, "migrate").finally(() => clearInterval(beating));
  expect(refused.code).toBe(1);
  expect(refused.err).toContain("and a server of an earlier release is running");
});

test("a backup of tables of 1.1.0 is restored to PostgreSQL, which migrates the copy, and the backup stays", async () => {
  const directory = temporaryDirectory("backups");
  await succeed(["--data", fixtureData("1.1.0")], `backup ${directory}`);
  const storage = ["--database-url", await postgresUrl(), "--data", temporaryDirectory("data")];
  await succeed(storage, `restore ${directory}`);
  expect(JSON.parse(await succeed(storage, "keys list --json"))).toHaveLength(5);
  expect(await migrationsIn(storage)).toMatchObject([
    { actor: { kind: "command line" }, before: { schemaVersion: 13 } },
  ]);
});
