import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { bearer } from "../../bearer.ts";
import { version } from "../../../package.json" with { type: "json" };
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";
import { storePolicy } from "../../../trials/harness/policy.ts";
import { postgresUrl, startPostgres } from "../../../trials/harness/postgres.ts";
import { cleanUp, EXECUTABLE, InProcessCli, spawnTracked, cliDirectory } from "../../cli/cli.ts";

const database = await postgresUrl();
afterAll(cleanUp);

const host = (url: string) => new URL(url).host;

test("messages name the hosts of PostgreSQL, without users and passwords", async () => {
  const cli = new InProcessCli();
  const storage = ["--database-url", database];
  const postgres = `PostgreSQL at ${host(database)}${new URL(database).pathname}`;
  expect((await cli.run(["keys", "list", ...storage])).err).toStartWith(
    `there is no database in production (data: ${postgres}): it has no tables of production; `,
  );
  await cli.run(["migrate", ...storage]);
  const empty = await cli.run(["keys", "list", ...storage]);
  expect(empty.out).toStartWith(`There are no keys in production (data: ${postgres}). Create one: `);
  expect((await cli.run(["keys", "show", "7", ...storage])).err).toContain(
    `this is production (data: ${postgres})`,
  );

  const { startMessage, stop, lines } = await cli.serve(storage);
  expect(startMessage).toContain(`\n  Data         ${postgres}\n  Rate limits  ${postgres}\n`);
  await stop();
  const log = lines.join("\n");
  expect(log).toContain(`"data":"${postgres}","rateLimits":"${postgres}"`);
  expect(startMessage + log).not.toContain("s3cret");
  expect(startMessage + log).not.toContain(new URL(database).username + "@");
});

test("over TLS, with a private authority: no warning of plain text, and the keys commands read usage", async () => {
  const cli = new InProcessCli();
  cli.clock.now = cli.clock.steadyNow = () => Date.now();
  const authority = new CertificateAuthority();
  const tls = authority.issue("IP:127.0.0.1");
  const postgres = await startPostgres({ tls });
  const urlFile = join(cliDirectory(), "database-url");
  writeFileSync(urlFile, `${postgres.url}?sslmode=verify-full&sslrootcert=${authority.caFile}\n`, {
    mode: 0o600,
  });
  const storage = ["--database-url-file", urlFile];
  const server = await cli.serve(storage);
  const headers = bearer(server.secret);
  expect((await fetch(`${server.url}/pets`, { headers })).status).toBe(200);
  expect(await cli.json("keys", "list", ...storage)).toMatchObject([
    { id: 1, usage: { minute: { used: 1 } } },
  ]);
  expect(await cli.json("servers", "list", ...storage)).toMatchObject({ items: [{ version }] });
  await server.stop();
  expect((await cli.run(["servers", "list", ...storage])).out).toMatch(/^No server is running on /m);
  expect(server.lines.filter((line) => line.includes(".plain-text"))).toEqual([]);
  await postgres.stop();
});

test("the URL of the database can be in a file that can be read only once, and commands use the saved settings", async () => {
  const url = await postgresUrl();
  await storePolicy(["--database-url", url], { plans: { free: { perMinute: 7, perDay: 80 } } });
  const line = '"$0" keys create --name x --plan free --database-url-file <(echo "$1")';
  const child = spawnTracked(["bash", "-c", line, EXECUTABLE, url], { cwd: cliDirectory() });
  expect(await child.stdout.text()).toContain("free plan, 7 requests per minute, 80 per day");
});
