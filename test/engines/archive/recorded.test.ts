import { Database } from "bun:sqlite";
import { expect, setDefaultTimeout, test } from "bun:test";
import type { Config } from "../../../src/config/config.ts";
import { DataDirectory } from "../../../src/data-directory.ts";
import { DataLocation } from "../../../src/data-location.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { succeed } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { playAll, type Scenario } from "../../recorded/play.ts";
import { readRecord } from "../../recorded/record.ts";
import { SCENARIOS } from "../../recorded/scenarios.ts";

setDefaultTimeout(60_000);

/** Moves data and quotas from SQLite to PostgreSQL and back to SQLite, with a backup and a restore each. */
async function throughBackups(config: Config): Promise<Config> {
  const { environment, directory: from } = config.data;
  const backUpAndRestore = async (from: readonly string[], to: readonly string[]) => {
    const backups = temporaryDirectory("backups");
    for (const line of [
      ["backup", backups, ...from],
      ["restore", backups, ...to],
    ])
      await succeed(...line, "--env", environment);
  };
  const onPostgres = ["--database-url", await postgresUrl(), "--data", temporaryDirectory("data")];
  const data = temporaryDirectory("data");
  const directory = new DataDirectory({ path: data, environment });
  await backUpAndRestore(["--data", from.path], onPostgres);
  await backUpAndRestore(onPostgres, ["--data", data]);
  using database = new Database(directory.files.database);
  // The restores have entries in the audit trail, and one of them the time of its backup in the metrics.
  database.run("DELETE FROM audit WHERE action = 'data.restored'");
  database.run("UPDATE sqlite_sequence SET seq = (SELECT max(id) FROM audit) WHERE name = 'audit'");
  database.run("DELETE FROM server_settings WHERE name = 'last-backup'");
  return { ...config, data: new DataLocation({ directory }) };
}

function moved(scenario: Scenario): Scenario {
  return { ...scenario, moveData: throughBackups };
}

const recorded = await readRecord();

let played: ReturnType<typeof playAll> | undefined;
/** Played by the first test that needs it, so that what fails then is an error of each test, with its cause. */
const responses = () => (played ??= playAll(SCENARIOS.map(moved)));

test("the requests of the record were played", async () => {
  expect([...(await responses()).keys()]).toEqual([...recorded.keys()]);
}, 300_000);

/** The server has not measured a write yet: others have prepared its data. */
const measured = (text: string) =>
  text.replace(/("database":\{[^}]*"latencyMs":)null/, (_, start: string) => `${start}"<ms>"`);

test.each([...recorded])(
  "after two backups and restores, the response is as recorded: %s",
  async (name, text) => {
    expect(measured((await responses()).get(name) ?? "")).toBe(text);
  },
);
