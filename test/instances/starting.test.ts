import { SQL } from "bun";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { postgresUrl } from "../engines/postgres.ts";
import { valkeyUrl } from "../engines/valkey.ts";
import { temporaryFolder } from "../process.ts";
import { ask } from "./asking.ts";
import { Fleet } from "./fleet.ts";
import type { LogLine } from "./instance.ts";

let folder: ReturnType<typeof temporaryFolder>;
beforeAll(() => void (folder = temporaryFolder()));
afterAll(() => folder.remove());

const warnings = (log: readonly LogLine[]) =>
  log.filter(({ level }) => level !== "info").map(({ event }) => event);
const patiently = ["--limits-timeout", "1s"];

test("ten servers started at once on an empty database all serve, take each step once and print one key", async () => {
  const database = await postgresUrl();
  const place = ["--database-url", database, "--limits-url", await valkeyUrl()];
  const fleet = await Fleet.start({ size: 10, place, flags: patiently });
  const [key, ...others] = fleet.members.flatMap(({ key }) => key ?? []);
  expect([key, others]).toEqual([expect.stringMatching(/^pet_live_/), []]);
  const answers = await Promise.all(fleet.urls.map((url) => ask(url, key ?? "")));
  expect(answers.map(({ status }) => status)).toEqual(fleet.urls.map(() => 200));
  expect(answers.map(({ remaining }) => remaining).toSorted((a, b) => b - a)).toEqual(
    fleet.urls.map((_, i) => 59 - i),
  );
  expect(fleet.logs.flatMap(warnings)).toEqual([]);
  await fleet.stop();

  await using sql = new SQL(database, { max: 1 });
  const steps = await sql`SELECT version::int FROM production.schema_migrations ORDER BY version`;
  expect(steps.map(({ version }: { version: number }) => version)).toEqual(
    MIGRATIONS.map(({ version }) => version),
  );
  const [{ keys }] = await sql`SELECT count(*)::int AS keys FROM production.api_keys`;
  expect(keys).toBe(1);
}, 30_000);

test("PostgreSQL without Valkey: servers share the data and say at the start that limits are each one's own", async () => {
  const place = ["--database-url", await postgresUrl(), "--data", `${folder.path}/postgres`];
  const fleet = await Fleet.start({ size: 2, place });
  const { key } = await fleet.newKey("free");
  for (const log of fleet.logs) {
    expect(warnings(log)).toContain(
      "limits are counted by each server on its own; give --limits-url to share them",
    );
  }
  const answers = await Promise.all(fleet.urls.map((url) => ask(url, key)));
  expect(answers.map(({ remaining }) => remaining)).toEqual([59, 59]);
  await fleet.stop();
}, 20_000);

test("Valkey without PostgreSQL: not one request is forgotten when the server is killed", async () => {
  const place = ["--limits-url", await valkeyUrl(), "--data", `${folder.path}/sqlite`];
  const fleet = await Fleet.start({ size: 1, place, flags: patiently });
  const [url = ""] = fleet.urls;
  const key = fleet.members[0]?.key ?? "";
  for (let i = 0; i < 25; i++) await ask(url, key);
  await fleet.end(0, "SIGKILL");
  await fleet.revive(0);
  expect(fleet.members[0]?.key).toBeUndefined();
  expect(await ask(url, key)).toMatchObject({ status: 200, remaining: 60 - 26 });
  await fleet.stop();
}, 20_000);
