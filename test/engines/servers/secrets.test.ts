import { SQL } from "bun";
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { storePolicy, UNLIMITED } from "../../../trials/harness/policy.ts";
import { bearer } from "../../bearer.ts";
import { cleanUp, cliDirectory, InProcessCli } from "../../cli/cli.ts";
import { until } from "../../timing.ts";

afterAll(cleanUp);

/** A file that contains a URL with this user and password. */
function urlFile(url: string, user: string) {
  const file = join(cliDirectory(), "url");
  const write = (password: string) => {
    const changed = new URL(url);
    [changed.username, changed.password] = [user, password];
    writeFileSync(file, `${changed.href}\n`, { mode: 0o600 });
  };
  write("first");
  return { file, write };
}

test("a new password of PostgreSQL, in the database and in the file of its URL, needs no restart", async () => {
  const postgres = await startPostgres();
  await using sql = new SQL(postgres.url, { max: 1 });
  const [{ hba_file: rules }] = await sql<[{ hba_file: string }]>`SHOW hba_file`;
  writeFileSync(rules, "host all app 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n");
  await sql`CREATE ROLE app LOGIN PASSWORD 'first'`;
  await sql`GRANT CREATE ON DATABASE postgres TO app`;
  await sql`SELECT pg_reload_conf()`;
  const { file, write } = urlFile(postgres.url, "app");
  await storePolicy(["--database-url-file", file], UNLIMITED);
  const server = await new InProcessCli().serve(["--database-url-file", file]);
  const headers = bearer(server.secret);
  const status = async () => (await fetch(`${server.url}/pets`, { headers })).status;
  expect(await status()).toBe(200);

  await sql`ALTER ROLE app PASSWORD 'second'`;
  const terminate = () => sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'`;
  // Sessions stay open when the password changes.
  const outage = () => server.lines.find((line) => line.includes('"database.unavailable"'));
  await until(async () => (await terminate()) && (await status()) === 503 && outage() !== undefined, 10_000);
  expect(outage()).toContain("password");
  write("second");
  await until(async () => (await status()) === 200, 5_000);
  await server.stop();
  await postgres.stop();
}, 60_000);
