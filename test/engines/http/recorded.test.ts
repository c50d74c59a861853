import { expect, test } from "bun:test";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { playAll, type Scenario } from "../../recorded/play.ts";
import { readRecord } from "../../recorded/record.ts";
import { SCENARIOS } from "../../recorded/scenarios.ts";

async function onPostgres(scenario: Scenario): Promise<Scenario> {
  return { ...scenario, config: { ...scenario.config, databaseUrl: await postgresUrl() } };
}

/** The part of a response that names what a server uses. Nothing else may differ between the databases. */
const NAMES = /"(?:database|rateLimiter)":\{[^}]*\}/g;

const recorded = await readRecord();
const responses = await playAll(await Promise.all(SCENARIOS.map(onPostgres)));

test("the requests of the record were played", () => {
  expect([...responses.keys()]).toEqual([...recorded.keys()]);
});

test.each([...responses])("the response on PostgreSQL is that on SQLite: %s", (name, text) => {
  const withoutNames = (response = "") => response.replace(NAMES, "");
  expect(withoutNames(text)).toBe(withoutNames(recorded.get(name)));
});
