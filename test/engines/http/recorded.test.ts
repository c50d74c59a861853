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

let played: ReturnType<typeof playAll> | undefined;
/** Played by the first test that needs it, so that what fails then is an error of each test, with its cause. */
const responses = () => (played ??= Promise.all(SCENARIOS.map(onPostgres)).then(playAll));

test("the requests of the record were played", async () => {
  expect([...(await responses()).keys()]).toEqual([...recorded.keys()]);
}, 300_000);

test.each([...recorded.keys()])("the response on PostgreSQL is that on SQLite: %s", async (name) => {
  const withoutNames = (response = "") => response.replace(NAMES, "");
  expect(withoutNames((await responses()).get(name))).toBe(withoutNames(recorded.get(name)));
});
