import { expect, test } from "bun:test";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { playAll, type Scenario } from "../../recorded/play.ts";
import { readRecord } from "../../recorded/record.ts";
import { SCENARIOS } from "../../recorded/scenarios.ts";

async function onPostgres(scenario: Scenario): Promise<Scenario> {
  return { ...scenario, config: { ...scenario.config, databaseUrl: await postgresUrl() } };
}

/** All that may differ between the databases: the name of the request, what SQLite responds, what PostgreSQL does. */
const DIFFERENCES = new Map([
  ["admin, getServer 200", ['"database":{"kind":"SQLite"', '"database":{"kind":"PostgreSQL"'] as const],
]);

const recorded = await readRecord();
const responses = await playAll(await Promise.all(SCENARIOS.map(onPostgres)));

test("the requests of the record were played", () => {
  expect([...responses.keys()]).toEqual([...recorded.keys()]);
});

test.each([...responses])("the response on PostgreSQL is that on SQLite: %s", (name, text) => {
  const [sqlite, postgres] = DIFFERENCES.get(name) ?? ["", ""];
  expect(text).toBe((recorded.get(name) ?? "").replace(sqlite, postgres));
});
