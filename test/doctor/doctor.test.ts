import { version } from "../../package.json";
import { SQLITE_MIGRATIONS } from "../../src/store/sql/migration-steps.ts";
import { Database } from "bun:sqlite";
import { beforeEach, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { checkSettingsFiles } from "../../src/doctor/settings-files.ts";
import { SETTINGS } from "../../src/config/options.ts";
import type { Option, Options } from "../../src/config/parse-options.ts";
import { plural } from "../../src/text/formatting.ts";
import { openDatabase, sqliteVersion } from "../../src/store/sqlite/database.ts";
import { latestVersion } from "../../src/store/sql/migrations.ts";
import { WEBHOOK_SECRET } from "../../trials/harness/webhook-receiver.ts";
import { fillData } from "../archive/sample-data.ts";
import { cleanUpAfterAll, cliDirectory, InProcessCli } from "../cli/cli.ts";
import { diagnose } from "./diagnose.ts";

cleanUpAfterAll();

let cli: InProcessCli;
/** The path of the database. */
let path: string;
beforeEach(async () => {
  cli = new InProcessCli();
  path = join(cli.dataDir, "production.db");
  await fillData(cli.dataDir);
});

test("on a sound store every check is ok, and nothing changes", async () => {
  const before = readdirSync(cli.dataDir).toSorted();
  const { code, out } = await cli.run(["doctor", "--port", "0"]);
  expect(code).toBe(0);
  // The disk and the limit of open files are those of the machine.
  const text = out.replaceAll(/^.* (?:disk space|open files) .*\n/gm, "").replaceAll(cli.dataDir, "DATA");
  expect(text).toBe(`ok       configuration   production: the settings go together
ok       data directory  DATA is writable, and only its owner has access
ok       ports           the server can listen on 127.0.0.1 port 0
ok       SQLite          version ${sqliteVersion().version}
ok       database        DATA/production.db is sound: 49 pets, 1 order, 2 keys
ok       migrations      the schema has version ${latestVersion(SQLITE_MIGRATIONS)}, the newest
warning  backup          petstore backup has never been run on this database
                         → run petstore backup every night, as docs/backup.md shows
ok       used quotas     DATA/production-limits.db is sound
ok       clock           it is 2026-11-15T12:00:00.000Z
ok       TLS             the server serves plain HTTP: --tls-cert is not set

12 checks: 0 errors, ${plural(out.match(/^warning/gm)?.length ?? 0, "warning")}.
`);
  expect(readdirSync(cli.dataDir).toSorted()).toEqual(before);
});

test("before the first start there is no error, and a warning says where it looked", async () => {
  const cli = new InProcessCli({ hasData: false });

  const { code, of } = await diagnose(cli);
  expect(code).toBe(0);
  expect(of("data directory")[0]?.message).toBe(`${cli.dataDir} does not exist yet; the server creates it`);
  expect(of("database")).toMatchObject([
    {
      level: "warning",
      message: `${join(cli.dataDir, "production.db")} does not exist`,
      remedy: "petstore serve makes it; if a server has run already, name its data with --data or --env-file",
    },
  ]);
  expect(of("disk space")[0]?.message).toEndWith(`are free on the disk of ${dirname(cli.dataDir)}`);
});

test("a database that was deleted, also while a server used it, is an error that says what to do", async () => {
  rmSync(path);
  const lost = await diagnose(cli);
  expect([lost.code, lost.of("database")[0]?.message]).toEqual([
    1,
    expect.stringContaining(`${path} is missing or empty, but there was a database: see `),
  ]);
  writeFileSync(join(cli.dataDir, "production-rescued.db"), "");
  const [rescued] = (await diagnose(cli)).of("database");
  expect(rescued?.message).toContain("was deleted or replaced while a server used it");
});

test("a damaged database is an error, with exit status 1", async () => {
  const bytes = readFileSync(path);
  bytes.fill(0xff, 8 * 4_096, 12 * 4_096);
  writeFileSync(path, bytes);
  const { code, of } = await diagnose(cli);
  expect(code).toBe(1);
  expect(of("database")[0]).toMatchObject({
    level: "error",
    remedy: expect.stringContaining("petstore restore --replace"),
  });
  expect(await cli.err(["doctor", "--port", "0"])).toBe("1 error found");
});

test("references to missing rows are damage too", async () => {
  const database = new Database(path);
  database.run("PRAGMA foreign_keys = OFF");
  database.run("DELETE FROM pets WHERE id = 1");
  database.close();
  expect((await diagnose(cli)).of("database")[0]?.message).toEndWith(
    "is not sound: 1 row of orders refers to missing rows of pets",
  );
});

test("a schema of an earlier release is a warning, one that needs a later release an error", async () => {
  const newest = latestVersion(SQLITE_MIGRATIONS);
  const migrations = SQLITE_MIGRATIONS.slice(0, -1);
  const earlier = latestVersion(migrations);
  rmSync(path);
  openDatabase(path, { migrations, synchronous: "NORMAL", cacheKiB: 64, busyTimeoutMs: 0 }).close();
  expect((await diagnose(cli)).of("migrations")).toMatchObject([
    {
      level: "warning",
      message: `the schema has version ${earlier}, and the next start migrates it to ${newest}`,
    },
  ]);
  const database = new Database(path);
  const setVersion = (version: number, oldestRelease: string) => {
    database.run("DELETE FROM schema_migrations");
    database.run(
      "INSERT INTO schema_migrations (version, name, oldest_release) VALUES (?, 'a migration', ?)",
      [version, oldestRelease],
    );
  };
  setVersion(newest + 1, "1.0.0");
  expect((await diagnose(cli)).of("migrations")).toMatchObject([
    {
      level: "ok",
      message: `the schema has version ${newest + 1}, of a newer release, and this one can run on it`,
    },
  ]);
  setVersion(newest + 1, "999.1.0");
  expect((await diagnose(cli)).of("migrations")).toMatchObject([
    { level: "error", message: `the tables need petstore 999.1.0 or newer; this is petstore ${version}` },
  ]);
  database.close();
});

test("a directory and files that others can read are warnings with the command that helps", async () => {
  chmodSync(path, 0o644);
  expect((await diagnose(cli)).of("data directory")).toMatchObject([
    { level: "warning", remedy: `chmod go= ${path}` },
  ]);
  chmodSync(cli.dataDir, 0o755);
  expect((await diagnose(cli)).of("data directory")).toMatchObject([{ remedy: `chmod 700 ${cli.dataDir}` }]);
});

test("a database of another user is not called damaged", async () => {
  // Root reads everything, and only root can give files away.
  if (process.getuid?.() === 0) {
    chownSync(path, 65_534, 65_534);
    const { code, of } = await diagnose(cli);
    expect(code).toBe(0);
    expect(of("data directory")[1]).toMatchObject({
      level: "warning",
      message: `${path} belongs to another user than the directory`,
      remedy: `give them to the user of the server: chown --reference=${cli.dataDir} ${path}`,
    });
  } else {
    chmodSync(path, 0);
    expect((await diagnose(cli)).of("database")[0]?.remedy).toContain(`chown USER ${path}`);
  }
});

test("a port of another program is an error, that of a running server is not", async () => {
  using other = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response("", { status: 404 }),
  });
  const taken = String(other.port);
  expect((await diagnose(cli, "--port", taken)).of("ports")).toEqual([
    {
      check: "ports",
      level: "error",
      message: `the server cannot listen on 127.0.0.1 port ${taken}: the port is in use`,
      remedy: "stop the other program or choose another --port",
    },
  ]);
  expect((await diagnose(cli, "--admin-address", `127.0.0.1:${taken}`)).of("ports")[1]).toMatchObject({
    level: "error",
    remedy: "stop the other program or choose another --admin-address",
  });
  const server = await cli.serve();
  const ports = ["--port", new URL(server.url).port, "--admin-address", new URL(server.adminUrl).host];
  expect((await diagnose(cli, ...ports)).of("ports")).toMatchObject([{ level: "ok" }, { level: "ok" }]);
  await server.stop();
  expect((await diagnose(cli, "--host", "192.0.2.1")).of("ports")[0]).toMatchObject({
    message: "the server cannot listen on 192.0.2.1 port 0: this machine does not have that address",
  });
});

test("settings that do not go together are warnings, a wrong one is exit status 2", async () => {
  const { code, of } = await diagnose(cli, "--host", "0.0.0.0");
  expect(code).toBe(0);
  expect(of("configuration")).toMatchObject([
    { level: "warning", remedy: expect.stringMatching(/^use --tls-cert/) },
    { level: "warning", remedy: expect.stringMatching(/^set --public-url/) },
  ]);
  expect(await cli.run(["doctor", "--port", "x"])).toMatchObject({ code: 2 });
  expect(await cli.run(["doctor", "--tls-cert", "x"])).toMatchObject({ code: 2 });
});

test("the access log: whether it can be appended to, and who else can read it", async () => {
  const directory = join(cli.dataDir, "logs");
  const file = join(directory, "access.log");
  const found = async () => (await diagnose(cli, "--access-log", file)).of("access log");
  expect(await found()).toMatchObject([
    { level: "error", message: `the directory ${directory} does not exist`, remedy: expect.any(String) },
  ]);
  mkdirSync(directory, { mode: 0o700 });
  expect(await found()).toMatchObject([{ level: "ok", message: `lines can be appended to ${file}` }]);
  expect(readdirSync(directory)).toEqual([]);
  writeFileSync(file, "", { mode: 0o640 });
  expect(await found()).toMatchObject([{ level: "warning", message: `other users have access to ${file}` }]);
  rmSync(file);
  mkdirSync(file);
  expect(await found()).toMatchObject([{ level: "error", message: `${file} is a directory` }]);
  for (const argv of [[], ["--access-log", "-"]])
    expect((await diagnose(cli, ...argv)).of("access log")).toEqual([]);
});

test("a public URL of the examples is a warning", async () => {
  const warned = (await diagnose(cli, "--public-url", "https://api.example.com")).of("configuration");
  expect(warned).toMatchObject([
    {
      level: "warning",
      message: expect.stringContaining("--public-url is https://api.example.com/v1, an address"),
    },
  ]);
  const own = (await diagnose(cli, "--public-url", "https://example.com.pets.test")).of("configuration");
  expect(own).toMatchObject([{ level: "ok" }]);
});

test("every setting whose value is a URL is one that a server connects to, and that is checked, or one that it shows", () => {
  const options: Options = SETTINGS;
  const urls = Object.entries(options).filter(([, { type }]) => type.isUrl);
  const namesOf = (isDestination: true | undefined) =>
    urls.filter(([, each]) => each.isDestination === isDestination).map(([name]) => name);
  expect(namesOf(true)).toEqual(["database-url", "oidc-issuer", "webhook-url", "otlp-url"]);
  expect(namesOf(undefined)).toEqual([
    "public-url",
    "other-environment-url",
    "security-contact",
    "cors-origin",
  ]);
});

test("the receiver of the webhook: any response will do that is no redirect and no fault", async () => {
  let response = new Response("", { status: 405 });
  using receiver = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => response });
  const secret = join(cli.dataDir, "secret");
  writeFileSync(secret, `${WEBHOOK_SECRET}\n`, { mode: 0o600 });
  const found = async (url: string) =>
    (await diagnose(cli, "--webhook-url", url, "--webhook-secret-file", secret)).of("webhook")[0];
  const url = new URL("/a-secret-path", receiver.url);
  expect(await found(url.href)).toMatchObject({ level: "ok", message: `${url.origin} responds` });
  response = new Response("", { status: 308, headers: { Location: "https://other.example" } });
  expect(await found(url.href)).toMatchObject({
    level: "warning",
    message: `${url.origin} responds with 308, and no redirect is followed`,
    remedy: "set --webhook-url to the address that it leads to",
  });
  response = new Response("", { status: 502 });
  expect(await found(url.href)).toMatchObject({
    level: "warning",
    message: `${url.origin} responds with 502`,
    remedy: "try it with petstore webhook test",
  });
  for (const status of [200, 299, 300, 399, 400, 499, 500]) {
    response = new Response("", { status });
    const isOk = status < 300 || (status >= 400 && status < 500);
    expect([status, (await found(url.href))?.level]).toEqual([status, isOk ? "ok" : "warning"]);
  }
  const nobody = await found("http://127.0.0.1:1/a-secret-path");
  expect(nobody).toMatchObject({
    level: "warning",
    message: expect.stringContaining("127.0.0.1:1 does not respond: "),
  });
  expect(JSON.stringify(nobody)).not.toContain("secret-path");
});

test("the collector has to accept a request without spans", async () => {
  const bodies: string[] = [];
  using collector = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      bodies.push(await request.text());
      const { pathname } = new URL(request.url);
      return new Response("{}", {
        status: pathname === "/v1/traces" ? 200 : Number(pathname.slice(1)) || 404,
      });
    },
  });
  const found = async (url: string) => (await diagnose(cli, "--otlp-url", url)).of("spans")[0];
  expect(await found(collector.url.origin)).toMatchObject({ level: "ok" });
  expect(await found(`${collector.url.origin}/traces`)).toMatchObject({
    level: "warning",
    remedy: "correct the path: collectors take spans at /v1/traces",
  });
  expect(bodies).toEqual(['{"resourceSpans":[]}', '{"resourceSpans":[]}']);
  expect(await found(`${collector.url.origin}/299`)).toMatchObject({ level: "ok" });
  expect(await found(`${collector.url.origin}/300`)).toMatchObject({
    level: "warning",
    remedy: "set --otlp-url to the address that it leads to",
  });
});

test("files of settings: one that everybody can read is a warning if it has a secret, an unusable one an error", async () => {
  const file = join(cli.dataDir, "settings");
  const found = async (setting: string) =>
    (await diagnose(cli, `--${setting}`, file)).of("settings files")[0];
  const write = (text: string, mode: number) => {
    writeFileSync(file, text);
    chmodSync(file, mode);
  };
  write("a-token-for-metrics-only", 0o640);
  expect(await found("metrics-token-file")).toMatchObject({ level: "ok" });
  chmodSync(file, 0o644);
  expect(await found("metrics-token-file")).toMatchObject({
    level: "warning",
    message: `every user can read ${file} (--metrics-token-file), which has a secret`,
    remedy: `chmod o= ${file}`,
  });
  write("short", 0o600);
  expect(await found("metrics-token-file")).toMatchObject({ level: "error" });
  write("PETSTORE_LOG_LEVEL=warn\n", 0o644);
  expect(await found("env-file")).toMatchObject({ level: "ok" });
  write("PETSTORE_ADMIN_TOKEN=a-token-of-an-operator\n", 0o644);
  expect(await found("env-file")).toMatchObject({ level: "warning" });
});

test("each file with a secret is a warning if everybody can read it", () => {
  const contents: Readonly<Record<string, string>> = {
    "admin-token-file": "a-token-of-an-operator",
    "database-url-file": "postgres://petstore:password@db.example/petstore",
    "oidc-client-secret-file": "the-secret-of-the-client",
    "webhook-secret-file": WEBHOOK_SECRET,
  };
  const named = Object.values<Option>(SETTINGS).flatMap(({ type, fileOption }) =>
    type.secret && fileOption !== undefined ? fileOption : [],
  );
  expect(named.toSorted()).toEqual(Object.keys(contents).toSorted());
  const file = join(cliDirectory(), "secret");
  for (const [setting, text] of Object.entries({ ...contents, "tls-key": "" })) {
    writeFileSync(file, text);
    chmodSync(file, 0o644);
    const findings = checkSettingsFiles((each) => (each === setting ? file : undefined));
    expect(findings).toMatchObject([{ level: "warning", remedy: `chmod o= ${file}` }]);
    expect(findings[0]?.message).toContain(`(--${setting}), which has a secret`);
  }
});

test("a database without a backup is a warning, and so is one whose last backup is older than two days", async () => {
  const found = async () => (await diagnose(cli)).of("backup")[0];
  cli.clock.time = Date.now();
  expect(await found()).toMatchObject({
    level: "warning",
    remedy: expect.stringContaining("petstore backup"),
  });
  expect(await cli.run(["backup", cliDirectory()])).toMatchObject({ code: 0 });
  expect(await found()).toMatchObject({ level: "ok" });
  cli.clock.time += 2 * 86_400_000 + 1;
  expect(await found()).toMatchObject({ level: "warning" });
});
