import { runProgram } from "../../../trials/harness/child.ts";
import { SQL } from "bun";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { PETSTORE, type PetstoreServer, startPetstore } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { freePort, freePorts } from "../../../trials/harness/server.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { upgradedDataCases } from "./data-cases.ts";
import { expectNothingLost, startLoad, untilMoreCreates } from "./load.ts";
import { FIXTURES, fixtureData, previousRelease, readRecorded } from "./previous-release.ts";

// Servers start and stop several times, on a machine that may be busy.
setDefaultTimeout(120_000);

/** Each server counts on its own until Valkey responds, which it does late on a busy machine. */
const PATIENT = ["--limits-timeout", "1s", "--max-connections-per-address", "0"];

const previous = previousRelease();

/** The URL of a PostgreSQL database with what the previous release stored. */
async function fixtureDatabase(): Promise<string> {
  const url = await postgresUrl();
  const sql = new SQL(url, { max: 1 });
  await sql.unsafe(readFileSync(join(FIXTURES, "postgres.sql"), "utf8")).simple();
  await sql.end();
  return url;
}

describe("data of the previous release on PostgreSQL", () =>
  upgradedDataCases("postgres", async () => ({
    data: [temporaryDirectory("data")],
    "database-url": [await fixtureDatabase()],
    "limits-url": [await valkeyUrl()],
    "limits-timeout": ["1s"],
  })));

/** `schema` is the last version of the schema that the previous release knows. */
async function expectDowngradeRefused(flags: readonly string[], schema: number): Promise<void> {
  const { code, out, err } = await runProgram([...previous, "serve", ...flags]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toMatch(
    /its schema has version \d+, and this petstore supports versions up to \d+; upgrade petstore/,
  );
  expect(err).toContain(`versions up to ${schema};`);
}

test("SQLite under load: the previous release stops, this one starts on its data, and nothing is lost", async () => {
  const flags = ["--data", fixtureData(), "--port", `${freePort()}`, "--max-connections-per-address", "0"];
  const key = readRecorded("sqlite").secrets.load;
  const before = await startPetstore(flags, [], previous);
  const urls = Array.from({ length: 20 }, () => before.url);
  const load = startLoad(urls, key);
  await untilMoreCreates(load);

  expect(await before.stop()).toBe(0);
  const after = await startPetstore(flags);
  await untilMoreCreates(load);
  await expectNothingLost(load, after.url, key);
  expect(await after.stop()).toBe(0);

  await expectDowngradeRefused(flags, 13);
});

test("two instances on PostgreSQL, replaced one after the other under load: every request succeeds, nothing is lost", async () => {
  const storage = ["--database-url", await fixtureDatabase(), "--limits-url", await valkeyUrl()];
  const key = readRecorded("postgres").secrets.load;
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

  // After the first of them, both releases serve from the migrated tables; the last is a restart of this release.
  for (const index of [0, 1, 0]) {
    expect(await servers[index]?.stop()).toBe(0);
    servers[index] = await start(ports[index] ?? 0, PETSTORE);
    await untilMoreCreates(load);
  }
  for (const url of urls) await expectNothingLost(load, url, key);
  // The load tries the other instance if a connection is refused, or if PostgreSQL is too busy (503).
  const statuses = new Set(load.attempts.map(({ status }) => status));
  expect([...statuses].filter((status) => ![0, 200, 201, 503].includes(status))).toEqual([]);
  await Promise.all(servers.map((server) => server.stop()));
  await expectDowngradeRefused([...storage, "--data", temporaryDirectory("data"), "--port", "0"], 15);
});
