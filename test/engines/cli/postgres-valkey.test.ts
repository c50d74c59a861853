import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { CertificateAuthority } from "../../../harness/certificates.ts";
import { postgresUrl, startPostgres } from "../../../harness/postgres.ts";
import type { Server } from "../../../harness/server.ts";
import { startValkey } from "../../../harness/valkey.ts";
import { serve } from "../../cli/server-process.ts";
import { cleanUp, petstore, temporaryDirectory } from "../../cli/cli.ts";

let database: string;
let valkey: Server;
let limits: string;
beforeAll(async () => {
  [database, valkey] = await Promise.all([
    postgresUrl(),
    startValkey({ settings: { requirepass: "s3cret", databases: "4" } }),
  ]);
  limits = valkey.url.replace("//", "//:s3cret@");
}, 60_000);
afterAll(async () => {
  await valkey.stop();
  await cleanUp();
});

const host = (url: string) => new URL(url).host;
const keys = (...argv: string[]) => petstore("keys", ...argv, "--limits-url", limits);

test("messages name the hosts of PostgreSQL and Valkey, without users and passwords", async () => {
  const storage = ["--database-url", database, "--limits-url", `${limits}/2`];
  const postgres = `PostgreSQL at ${host(database)}${new URL(database).pathname}`;
  const empty = await petstore("keys", "list", ...storage);
  expect(empty.out).toStartWith(`There are no keys in production (data: ${postgres}). Create one: `);
  expect((await petstore("keys", "show", "7", ...storage)).err).toContain(
    `in production (data: ${postgres}); see`,
  );

  const { startMessage, stop, log } = await serve(temporaryDirectory(), ...storage);
  expect(startMessage).toContain(
    `\n  Data         ${postgres}\n  Rate limits  Valkey at ${host(valkey.url)}/2\n`,
  );
  expect(await stop("SIGTERM")).toBe(0);
  const serving = (await log()).join("\n");
  expect(serving).toContain(`"data":"${postgres}","rateLimits":"Valkey at ${host(valkey.url)}/2"`);
  expect(startMessage + serving).not.toContain("s3cret");
  expect(startMessage + serving).not.toContain(new URL(database).username + "@");
}, 20_000);

test("over TLS, with a private authority: no warning, and the keys commands read usage", async () => {
  const authority = new CertificateAuthority();
  const tls = authority.issue("IP:127.0.0.1");
  const [postgres, valkey] = await Promise.all([startPostgres({ tls }), startValkey({ tls })]);
  const directory = temporaryDirectory();
  const urlFile = join(directory, "database-url");
  writeFileSync(urlFile, `${postgres.url}?sslmode=verify-full&sslrootcert=${authority.caFile}\n`, {
    mode: 0o600,
  });
  const storage = [
    "--database-url-file",
    urlFile,
    "--limits-url",
    valkey.url,
    "--limits-ca",
    authority.caFile,
  ];
  const server = await serve(join(directory, "data"), "--limits-timeout", "1s", ...storage);
  const headers = { Authorization: `Bearer ${server.secret}` };
  expect((await fetch(`${server.url}/pets`, { headers })).status).toBe(200);
  const { out, err } = await petstore("keys", "list", ...storage, "--json");
  expect(err).toBe("");
  expect(JSON.parse(out)).toMatchObject([{ id: 1, usage: { minute: { used: 1 } } }]);
  expect(await server.stop("SIGTERM")).toBe(0);
  expect((await server.log()).filter((line) => !line.includes('"level":"info"'))).toEqual([]);
  await Promise.all([postgres.stop(), valkey.stop()]);
}, 30_000);

test("authorities that cannot be read are a failure that names the option", async () => {
  for (const command of [
    ["serve", "--port", "0"],
    ["keys", "list"],
  ]) {
    const data = temporaryDirectory();
    await petstore("keys", "create", "--name", "x", "--plan", "free", "--data", data);
    const limits = ["--limits-url", "rediss://127.0.0.1:1", "--limits-ca", "missing.pem"];
    const { code, err } = await petstore(...command, "--data", data, ...limits);
    expect({ code, err }).toEqual({
      code: 1,
      err: 'petstore: --limits-ca is "missing.pem"; it cannot be read: the file does not exist\n',
    });
  }
});

test.each([
  ["a wrong password", (url: string) => url.replace("s3cret", "not-it"), "WRONGPASS"],
  ["no password", (url: string) => url.replace(":s3cret@", ""), "NOAUTH"],
  ["a database that does not exist", (url: string) => `${url}/4`, "ERR DB index is out of range"],
  [
    "a single server instead of a cluster",
    (url: string) => `${url},${url}`,
    "ERR This instance has cluster support",
  ],
])("%s is reported as a wrong configuration", async (_name, change, reason) => {
  const { stop, log } = await serve(temporaryDirectory(), "--limits-url", change(limits));
  expect(await stop("SIGTERM")).toBe(0);
  const [line = ""] = await log();
  expect(JSON.parse(line)).toMatchObject({
    level: "warn",
    event: "valkey.rejects-commands",
    cause: expect.stringMatching(new RegExp(`^${reason}`)),
  });
});

test("an unavailable Valkey is reported in one line, without a stack", async () => {
  const { stop, log } = await serve(temporaryDirectory(), "--limits-url", "redis://127.0.0.1:1");
  expect(await stop("SIGTERM")).toBe(0);
  const [line = ""] = await log();
  expect(JSON.parse(line)).toMatchObject({
    level: "warn",
    event: "valkey.unavailable",
    cause: "connect ECONNREFUSED 127.0.0.1:1",
  });
});

test("without Valkey a ban is unknown and keys unban fails", async () => {
  const data = temporaryDirectory();
  const at = ["--data", data];
  const create = ["create", "--name", "app", "--plan", "enterprise", "--per-minute", "1", "--per-day", "9"];
  const bans = ["--ban-strikes", "1", "--ban-grace", "0", "--ban-length", "1h"];
  const { key } = JSON.parse((await keys(...create, "--json", ...at)).out);
  const { url, stop } = await serve(data, "--limits-url", limits, "--limits-timeout", "1s", ...bans);
  let body = "";
  while (!body.includes("key_banned")) {
    body = await (await fetch(`${url}/pets`, { headers: { Authorization: `Bearer ${key}` } })).text();
  }
  expect(await stop("SIGTERM")).toBe(0);
  const show = async () => JSON.parse((await keys("show", "1", "--json", ...at, ...bans)).out);
  const { state, bannedUntil } = await show();
  expect(state).toBe("banned");
  expect(Date.parse(bannedUntil) - Date.now()).toBeWithin(3_500_000, 3_600_001);

  valkey.freeze();
  const unavailable = `petstore: Valkey at ${host(valkey.url)} is unavailable: `;
  const listed = await keys("list", ...at);
  expect(listed.err).toStartWith(unavailable);
  expect(listed.err).toEndWith(" within 500 ms (usage, strikes and bans are unknown)\n");
  expect(listed.out).toMatch(/^1 +app +- +enterprise +write +active +\? +\? +\? +\? +20/m);
  expect(await show()).toMatchObject({ state: "active", usage: null, strikes: null, bannedUntil: null });
  const unban = await keys("unban", "1", ...at);
  expect(unban).toMatchObject({ code: 1, out: "" });
  expect(unban.err).toStartWith(unavailable);
  expect(unban.err).toEndWith(
    " within 500 ms; running servers unban the key themselves and update Valkey when it is available again; if no server is running, run this command again then\n",
  );
  valkey.thaw();

  // No server was running, so Valkey has not received the unban.
  expect(await show()).toMatchObject({ state: "banned" });
  expect(await keys("unban", "1", ...at)).toMatchObject({ code: 0, err: "" });
  expect(await show()).toMatchObject({ state: "active", strikes: 0, bannedUntil: null });
}, 20_000);
