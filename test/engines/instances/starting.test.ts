import { SQL } from "bun";
import { expect, test } from "bun:test";
import { MIGRATIONS } from "../../../src/store/postgres/migrations.ts";
import { rateLimitStatus } from "../../../harness/api-client.ts";
import { temporaryFolder } from "../../../harness/cleanup.ts";
import { Fleet } from "../../../harness/fleet.ts";
import type { LogLine } from "../../../harness/petstore.ts";
import { postgresUrl } from "../../../harness/postgres.ts";
import { valkeyUrl } from "../../../harness/valkey.ts";

const warnings = (log: readonly LogLine[]) =>
  log.filter(({ level }) => level !== "info").map(({ event }) => event);
const longTimeout = ["--limits-timeout", "1s"];

test("ten servers that start at the same time on an empty database all serve, migrate it once and create one key", async () => {
  const database = await postgresUrl();
  const storage = ["--database-url", database, "--limits-url", await valkeyUrl()];
  const fleet = await Fleet.start({ size: 10, storage, flags: longTimeout });
  const [key, ...others] = fleet.servers.flatMap(({ key }) => key ?? []);
  expect([key, others]).toEqual([expect.stringMatching(/^pet_live_/), []]);
  const statuses = await Promise.all(fleet.urls.map((url) => rateLimitStatus(url, key ?? "")));
  expect(statuses.map(({ status }) => status)).toEqual(fleet.urls.map(() => 200));
  expect(statuses.map(({ remaining }) => remaining).toSorted((a, b) => b - a)).toEqual(
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

test("PostgreSQL without Valkey: servers share the data and log at the start that each applies rate limits alone", async () => {
  const storage = ["--database-url", await postgresUrl(), "--data", temporaryFolder("servers")];
  const fleet = await Fleet.start({ size: 2, storage });
  const { key } = await fleet.createKey("free");
  for (const log of fleet.logs) {
    expect(warnings(log)).toContain("rate-limits.not-shared");
  }
  const statuses = await Promise.all(fleet.urls.map((url) => rateLimitStatus(url, key)));
  expect(statuses.map(({ remaining }) => remaining)).toEqual([59, 59]);
  await fleet.stop();
}, 20_000);

test("Valkey without PostgreSQL: no usage is lost when the server is killed", async () => {
  const storage = ["--limits-url", await valkeyUrl(), "--data", temporaryFolder("servers")];
  const fleet = await Fleet.start({ size: 1, storage, flags: longTimeout });
  const [url = ""] = fleet.urls;
  const key = fleet.servers[0]?.key ?? "";
  for (let i = 0; i < 25; i++) await rateLimitStatus(url, key);
  await fleet.stopServer(0, "SIGKILL");
  await fleet.startServer(0);
  expect(fleet.servers[0]?.key).toBeUndefined();
  expect(await rateLimitStatus(url, key)).toMatchObject({ status: 200, remaining: 60 - 26 });
  await fleet.stop();
}, 20_000);
