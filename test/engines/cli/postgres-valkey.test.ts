import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { bearer } from "../../bearer.ts";
import { version } from "../../../package.json" with { type: "json" };
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";
import { postgresUrl, startPostgres } from "../../../trials/harness/postgres.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { until } from "../../timing.ts";
import { cleanUp, EXECUTABLE, InProcessCli, spawnTracked, cliDirectory } from "../../cli/cli.ts";

const database = await postgresUrl();
const valkey = await startValkey({ settings: { requirepass: "s3cret/å", databases: "4" } });
const PASSWORD = ":s3cret%2F%C3%A5@";
const limits = valkey.url.replace("//", `//${PASSWORD}`);
afterAll(async () => {
  await valkey.stop();
  await cleanUp();
});

const host = (url: string) => new URL(url).host;

test("messages name the hosts of PostgreSQL and Valkey, without users and passwords", async () => {
  const cli = new InProcessCli();
  const storage = ["--database-url", database, "--limits-url", `${limits}/2`];
  const postgres = `PostgreSQL at ${host(database)}${new URL(database).pathname}`;
  const empty = await cli.run(["keys", "list", ...storage]);
  expect(empty.out).toStartWith(`There are no keys in production (data: ${postgres}). Create one: `);
  expect((await cli.run(["keys", "show", "7", ...storage])).err).toContain(
    `this is production (data: ${postgres})`,
  );

  const { startMessage, stop, lines } = await cli.serve(storage);
  expect(startMessage).toContain(
    `\n  Data         ${postgres}\n  Rate limits  Valkey at ${host(valkey.url)}/2\n`,
  );
  await stop();
  const log = lines.join("\n");
  expect(log).toContain(`"data":"${postgres}","rateLimits":"Valkey at ${host(valkey.url)}/2"`);
  expect(startMessage + log).not.toContain("s3cret");
  expect(startMessage + log).not.toContain(new URL(database).username + "@");
});

test("over TLS, with a private authority: no warning of plain text, and the keys commands read usage", async () => {
  const cli = new InProcessCli();
  cli.clock.now = () => Date.now();
  const authority = new CertificateAuthority();
  const tls = authority.issue("IP:127.0.0.1");
  const [postgres, valkey] = await Promise.all([startPostgres({ tls }), startValkey({ tls })]);
  const urlFile = join(cliDirectory(), "database-url");
  writeFileSync(urlFile, `${postgres.url}?sslmode=verify-full&sslrootcert=${authority.caFile}\n`, {
    mode: 0o600,
  });
  const limits = ["--limits-url", valkey.url, "--limits-ca", authority.caFile];
  const storage = ["--database-url-file", urlFile, ...limits];
  const server = await cli.serve(["--limits-timeout", "1s", ...storage]);
  const headers = bearer(server.secret);
  expect((await fetch(`${server.url}/pets`, { headers })).status).toBe(200);
  expect(await cli.json("keys", "list", ...storage)).toMatchObject([
    { id: 1, usage: { minute: { used: 1 } } },
  ]);
  expect(await cli.json("servers", "list", ...storage)).toMatchObject({ items: [{ version }] });
  await server.stop();
  expect((await cli.run(["servers", "list", ...storage])).out).toMatch(/^No server is running on /m);
  expect(server.lines.filter((line) => line.includes(".plain-text"))).toEqual([]);
  await Promise.all([postgres.stop(), valkey.stop()]);
});

test("the URL of the database can be in a file that can be read only once, and commands use the saved settings", async () => {
  const url = await postgresUrl();
  await (await new InProcessCli().serve(["--free-limits", "7/80", "--database-url", url])).stop();
  const line = '"$0" keys create --name x --plan free --database-url-file <(echo "$1")';
  const child = spawnTracked(["bash", "-c", line, EXECUTABLE, url], { cwd: cliDirectory() });
  expect(await child.stdout.text()).toContain("free plan, 7 requests per minute, 80 per day");
});

test("authorities that cannot be read are a wrong option", async () => {
  const cli = new InProcessCli();
  await cli.run(["keys", "create", "--name", "x", "--plan", "free"]);
  const limits = ["--limits-url", "rediss://127.0.0.1:1", "--limits-ca", "missing.pem"];
  for (const command of [
    ["serve", "--port", "0"],
    ["keys", "list"],
    ["copy", "--to", "postgres://127.0.0.1:1/pets"],
  ]) {
    const { code, err } = await cli.run([...command, ...limits]);
    expect(code).toBe(2);
    expect(err).toContain('--limits-ca is "missing.pem"; it cannot be read: the file does not exist');
  }
});

const wrong = limits.replace(PASSWORD, ":s3cret@");
test.each([
  ["a wrong password", wrong, "WRONGPASS"],
  ["a user that does not exist", limits.replace(PASSWORD, `nobody${PASSWORD}`), "WRONGPASS"],
  ["a wrong password of a cluster", `${wrong},${wrong}`, "WRONGPASS"],
  ["no password", limits.replace(PASSWORD, ""), "NOAUTH"],
  ["a database that does not exist", `${limits}/4`, "ERR DB index is out of range"],
  ["a single server instead of a cluster", `${limits},${limits}`, "ERR This instance has cluster support"],
  ["an unavailable server", "redis://127.0.0.1:1", "connect ECONNREFUSED 127.0.0.1:1"],
])("%s is reported in one line, with its cause and without the password", async (_name, url, cause) => {
  let line: string | undefined;
  // On a busy machine Valkey may take longer than a server waits for it at its start.
  do {
    const { stop, lines } = await new InProcessCli().serve(["--limits-url", url]);
    do await Bun.sleep(5);
    while ((line = lines.find((each) => each.includes('"event":"valkey.'))) === undefined);
    await stop();
    expect(lines.join("\n")).not.toContain("s3cret");
  } while (line.includes('"cause":"timeout"'));
  expect(JSON.parse(line)).toMatchObject({
    level: "warn",
    event: cause.startsWith("connect ") ? "valkey.unavailable" : "valkey.rejects-commands",
    cause: expect.stringMatching(new RegExp(`^${cause}`)),
  });
});

test("without Valkey a ban is unknown, and keys unban says what is pending", async () => {
  const cli = new InProcessCli();
  cli.clock.now = () => Date.now();
  const bans = ["--ban-strikes", "1", "--ban-grace", "0", "--ban-length", "1h"];
  const keys = (...argv: string[]) => cli.run(["keys", ...argv, "--limits-url", limits]);
  const create = ["create", "--name", "app", "--plan", "enterprise", "--per-minute", "1", "--per-day", "9"];
  const { key } = JSON.parse((await keys(...create, "--json")).out);
  const { url, stop } = await cli.serve(["--limits-url", limits, "--limits-timeout", "1s", ...bans]);
  let body = "";
  while (!body.includes("key_banned")) {
    body = await (await fetch(`${url}/pets`, { headers: bearer(key) })).text();
  }
  await stop();
  const show = async () => {
    const { out } = await keys("show", "1", "--json");
    return JSON.parse(out.slice(out.indexOf("{\n")));
  };
  // On a busy machine, Valkey takes longer for some of the commands than they wait.
  let shown = await show();
  const isShown = async (field: string, value: unknown) => {
    shown = await show();
    return shown[field] === value;
  };
  await until(() => isShown("state", "banned"), 10_000);
  expect(Date.parse(shown.bannedUntil) - Date.now()).toBeWithin(3_000_000, 3_600_001);

  valkey.freeze();
  const unavailable = `Valkey at ${host(valkey.url)} is unavailable: `;
  const [warning = "", ...table] = (await keys("list")).out.split("\n");
  expect(warning).toStartWith(`warning: ${unavailable}`);
  expect(warning).toEndWith(" within 500 ms (used quotas, strikes and bans are unknown)");
  expect(table.join("\n")).toMatch(/^1 +app +- +enterprise +write +active +\? +\? +\? +\? +20/m);
  expect(await show()).toMatchObject({ state: "active", usage: null, strikes: null, bannedUntil: null });
  const unban = await keys("unban", "1");
  const pending =
    "; running servers update it when it is available again; if no server is running, run this command again then";
  expect(unban).toEqual({
    code: 0,
    out: `${warning}
${warning.replace(" (used quotas, strikes and bans are unknown)", pending)}
Key 1 is unbanned by every running server within a second.
`,
    err: "",
  });
  valkey.thaw();

  // No server was running, so Valkey has not received the unban.
  await until(() => isShown("state", "banned"), 10_000);
  await until(async () => {
    expect(await keys("unban", "1")).toMatchObject({ code: 0, err: "" });
    return isShown("strikes", 0);
  }, 10_000);
  expect(shown).toMatchObject({ state: "active", bannedUntil: null });
});
