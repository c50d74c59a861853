import { beforeEach, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { NO_ACTIVITY } from "../../src/domain/servers.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { bearer } from "../bearer.ts";
import {
  cleanUpAfterAll,
  failure,
  InProcessCli,
  type InProcessServer,
  resultOf,
  spawnPetstore,
  cliDirectory,
  wrongUsage,
} from "./cli.ts";
import { until } from "../timing.ts";
import { createKey } from "./keys.ts";

cleanUpAfterAll();

let cli: InProcessCli;
beforeEach(() => void (cli = new InProcessCli()));

const TOKEN = "a-token-of-the-operators";

const get = (server: InProcessServer, path: string, token: string) =>
  fetch(server.adminUrl + path, { headers: bearer(token) });
const status = async (server: InProcessServer, token: string) =>
  (await get(server, "/api/keys", token)).status;

/** Resolves when the server takes the token. */
const untilAccepted = (server: InProcessServer, token: string) =>
  until(async () => (await status(server, token)) === 200, 5_000);

const signIn = ({ adminUrl }: InProcessServer, body: object) =>
  fetch(`${adminUrl}/api/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
const whoIs = async (server: InProcessServer, token: string) =>
  Object(await (await get(server, "/api/session", token)).json()).operator;
const ADMIN = { id: 1, name: "admin", role: "admin" };

async function itemsOf(server: InProcessServer, path: string, token: string): Promise<{ name: string }[]> {
  return Object(await (await get(server, path, token)).json()).items;
}
const settingOf = async (server: InProcessServer, name: string) =>
  (await itemsOf(server, "/api/settings", TOKEN)).find((setting) => setting.name === name);

const tokenFileOf = ({ dataDir }: InProcessCli) => join(dataDir, "production-admin-token");
const tokenOf = (cli: InProcessCli) => readFileSync(tokenFileOf(cli), "utf8").trim();

test("the admin token is made at the first start for the operator admin, and used again", async () => {
  const first = await cli.serve();
  const token = tokenOf(cli);
  expect(token).toMatch(/^pet_admin_[0-9A-Za-z]{43}$/);
  expect(first.startMessage).toContain(`  Admin        ${first.adminUrl} (token in ${tokenFileOf(cli)})\n`);
  expect(await status(first, token)).toBe(200);
  await first.stop();
  expect(first.startMessage + first.lines.join("\n")).not.toMatch(/pet_admin_[\w-]{5}/);

  cli.isTerminal = true;
  await using second = await cli.serve();
  const [, code = ""] =
    /^  Admin +http:\/\/127\.0\.0\.1:\d+\/\?code=([\da-f]{40})$/m.exec(second.startMessage) ?? [];
  expect(tokenOf(cli)).toBe(token);
  expect(await status(second, token)).toBe(200);
  expect(Object(await (await signIn(second, { code })).json()).operator).toEqual(ADMIN);
  expect((await signIn(second, { code })).status).toBe(401);
  expect(await cli.json("operators list")).toMatchObject([{ ...ADMIN, state: "active" }]);
});

test("a server at a terminal starts without a code if none can be stored, as on a full disk", async () => {
  await (await cli.serve()).stop();
  const database = new Database(join(cli.dataDir, "production.db"));
  database.run("CREATE TRIGGER full BEFORE INSERT ON sign_in_codes BEGIN SELECT RAISE(FAIL, 'full'); END");
  database.close();
  cli.isTerminal = true;
  await using server = await cli.serve();
  expect(server.startMessage).toMatch(/^  Admin +http:\/\/127\.0\.0\.1:\d+$/m);
});

test("is made also after operators of other roles were created", async () => {
  await cli.run("operators create --name prometheus --role metrics");
  await using server = await cli.serve();
  expect(await whoIs(server, tokenOf(cli))).toEqual({ ...ADMIN, id: 2 });
});

test("an admin token of an earlier release becomes that of the operator admin, and everything goes on", async () => {
  await createKey(cli);
  writeFileSync(tokenFileOf(cli), `${TOKEN}\n`, { mode: 0o600 });
  await using server = await cli.serve();
  expect(await whoIs(server, TOKEN)).toEqual(ADMIN);
});

test("an admin token that was replaced, or whose operator was revoked, does not come back with its file", async () => {
  await (await cli.serve()).stop();
  const token = tokenOf(cli);
  await cli.run("operators rotate admin");
  const server = await cli.serve();
  expect(await status(server, token)).toBe(401);
  expect(server.lines.join("\n")).toContain("admin.token-outdated");
  await server.stop();
  await cli.run("operators create --name ann --role admin");
  await cli.run("operators revoke admin");
  await using again = await cli.serve();
  expect(await status(again, token)).toBe(401);
});

test("a token in the data directory that the database has never seen is that of nobody", async () => {
  await (await cli.serve()).stop();
  writeFileSync(tokenFileOf(cli), `${TOKEN}\n`, { mode: 0o600 });
  await using server = await cli.serve();
  expect(await status(server, TOKEN)).toBe(401);
  expect(server.startMessage).not.toContain("token in");
  expect(server.lines.join("\n")).toContain("admin.token-outdated");
});

test("the token is no flag, which others could read in a list of processes", async () => {
  const removed = wrongUsage(
    "--admin-token is no flag, which others could read in a list of processes; use PETSTORE_ADMIN_TOKEN or --admin-token-file",
  );
  for (const line of ["serve --admin-token", "keys list --server http://127.0.0.1:1 --admin-token"])
    expect(await cli.run(`${line} ${TOKEN}`)).toEqual(removed);
  expect((await cli.run(`serv --admin-token ${TOKEN}`)).err).not.toContain(TOKEN);
  expect(await cli.out("serve --help")).toContain("\n  PETSTORE_ADMIN_TOKEN ");
  expect(await cli.run("admin-token rotate")).toEqual(
    wrongUsage('unknown command "admin-token"; see petstore --help'),
  );
});

test("the token of a variable is that of the operator bootstrap, and no file is made", async () => {
  const server = await cli.serve(["--host", "localhost"], { PETSTORE_ADMIN_TOKEN: TOKEN });
  expect(server.startMessage).toContain(`  Admin        ${server.adminUrl}\n`);
  expect(await whoIs(server, TOKEN)).toEqual({ ...ADMIN, name: "bootstrap" });
  expect(existsSync(tokenFileOf(cli))).toBeFalse();
  const host = { value: "localhost", source: "flag", default: "127.0.0.1" };
  expect<unknown>(await settingOf(server, "admin-token")).toMatchObject({ value: "…", source: "variable" });
  expect<unknown>(await settingOf(server, "host")).toMatchObject(host);
  await server.stop();
  expect(server.lines.join("\n")).not.toContain(TOKEN);
});

test("the admin token of a file is read again when the file is replaced, and the source is the env file", async () => {
  const directory = cliDirectory();
  const file = join(directory, "token");
  writeFileSync(file, `${TOKEN}\n`);
  writeFileSync(join(directory, "env"), `PETSTORE_ADMIN_TOKEN_FILE=${file}\n`);
  await using server = await new InProcessCli().serve(["--env-file", join(directory, "env")]);
  expect(await status(server, TOKEN)).toBe(200);
  expect<unknown>(await settingOf(server, "admin-token")).toMatchObject({ value: "…", source: "env file" });
  writeFileSync(`${file}.new`, "the-next-token-of-the-operators\n");
  renameSync(`${file}.new`, file);
  await untilAccepted(server, "the-next-token-of-the-operators");
  expect(await status(server, TOKEN)).toBe(401);
});

test("admin-url prints a URL that signs in once, also where the environment names a proxy, and fails when no server runs", async () => {
  const server = await cli.serve();
  // That of the server.
  cli.clock.advance(Date.now() - cli.clock.now());
  const codeIn = ({ out }: { out: string }) => new URL(out.trim()).searchParams.get("code");
  const printed = await cli.run("admin-url");
  expect(printed).toEqual({ code: 0, out: expect.stringContaining(`${server.adminUrl}/?code=`), err: "" });
  expect(printed.out).not.toContain(tokenOf(cli));
  const signedIn = await signIn(server, { code: codeIn(printed) });
  expect(Object(await signedIn.json()).operator).toEqual(ADMIN);
  expect((await signIn(server, { code: codeIn(printed) })).status).toBe(401);
  await cli.run("operators create --name ann --role viewer");
  const ofAnn = await signIn(server, { code: codeIn(await cli.run("admin-url --operator ann")) });
  expect(Object(await ofAnn.json()).operator).toMatchObject({ name: "ann", role: "viewer" });
  const entry = /admin.signed-in .* ann, console .*codeMadeBy: admin-url \(ann\)$/m;
  expect(await cli.out("audit --action admin.signed-in")).toMatch(entry);
  await cli.run("operators create --name prometheus --role metrics");
  expect(await cli.err("admin-url --operator prometheus")).toBe(
    "This needs the role viewer; prometheus has metrics.",
  );
  expect(await cli.err("admin-url --operator bob")).toBe(
    "Operator bob does not exist, is revoked or has expired.",
  );
  // It asks the server itself.
  const proxy = "http://127.0.0.1:1";
  const variables = { PETSTORE_DATA: cli.dataDir, HTTP_PROXY: proxy, http_proxy: proxy };
  expect(await resultOf(spawnPetstore(["admin-url"], { variables }))).toMatchObject({ code: 0, err: "" });
  const none = "start it with petstore serve";
  await cli.run("migrate --env staging");
  expect(await cli.err("admin-url --env staging")).toBe(
    `no server runs in staging (data: ${cli.dataDir}); ${none}`,
  );
  await server.stop();
  expect(await cli.err("admin-url")).toBe(`no server runs in production (data: ${cli.dataDir}); ${none}`);
});

test("admin-url prints no code for a program that has taken the port of a server that was killed", async () => {
  const asked: string[] = [];
  using impostor = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      asked.push(url);
      return new Response();
    },
  });
  await cli.run("keys create --name a --plan free");
  const stores = openSqlite(join(cli.dataDir, "production.db"));
  const identity = { id: "killed", name: hostname(), version: "1.0.0", startedAt: 0 };
  const report = (adminUrl: string | null, name = hostname()) =>
    stores.serverReports.report("killed", JSON.stringify({ ...NO_ACTIVITY, ...identity, name, adminUrl }));
  await report(impostor.url.origin);
  const { code, out, err } = await cli.run("admin-url");
  expect([code, out, asked]).toEqual([1, "", []]);
  expect(err).toContain("no server of production");
  // The loopback address of a server on another machine is that of this one.
  await report(impostor.url.origin, "web-2");
  expect(await cli.err("admin-url")).toBe(
    `the servers listen for operators on loopback addresses of other machines (${impostor.url.origin} on web-2) in production (data: ${cli.dataDir}); run this command on the machine of a server, or set --admin-address there`,
  );
  await report(null);
  expect(await cli.err("admin-url")).toStartWith("--admin-address is off on every server in production");
  await stores.close();
});

test("--admin-address that is taken is an error, and off turns the listener off", async () => {
  await using server = await new InProcessCli().serve();
  const { host, port } = new URL(server.adminUrl);
  expect(await cli.run(`serve --port 0 --admin-address ${host}`)).toEqual(
    failure(
      `cannot listen for operators on 127.0.0.1 port ${port}: the port is in use; stop the other program or choose another --admin-address`,
    ),
  );
  await using off = await cli.serve(["--admin-address", "off"]);
  expect(off.startMessage).toContain("  Admin        off\n");
});

const tokenIn = (text: string) => /^ {2}(pet_admin_[\w-]{43})$/m.exec(text)?.[1] ?? "";

test("operators create, list, rotate and revoke, by name and by identifier, here and on a server elsewhere", async () => {
  expect(await cli.out("operators list")).toStartWith("There are no operators in production");
  await using server = await cli.serve();
  const created = await cli.run("operators create --name ann --role support");
  expect(created.out).toStartWith("Created operator 2 ann with the role support in production");
  expect(created.out).toEndWith("paste it there, or open the URL that petstore admin-url prints.\n");
  const ann = tokenIn(created.out);
  const listed = await cli.out("operators list");
  expect(listed).toMatch(
    /^ID +NAME +ROLE +STATE +TOKEN +TOKEN CREATED +EARLIER TOKENS END +EXPIRES +LAST USED +CREATED$/m,
  );
  expect(listed).toMatch(/^2 +ann +support +active +pet_admin_.{4}….{4} /m);
  expect(listed).not.toContain(ann);
  expect(await cli.err("operators create --name ann --role viewer")).toBe(
    "There is an operator ann already.",
  );

  const remote = (line: string, token = ann) =>
    cli.run(`${line} --server ${server.adminUrl}`, { PETSTORE_TOKEN: token });
  expect((await remote("operators create --name bob --role admin")).err).toBe(
    "This needs the role admin; ann has support.",
  );
  const rotated = await remote("operators rotate ann");
  expect(rotated.code).toBe(0);
  expect((await remote("keys list")).err).toStartWith("The token is wrong or was replaced");
  expect(tokenIn(rotated.out)).not.toBe(ann);

  const again = await cli.json<{ token: string; operator: object }>("operators rotate 2");
  expect(again).toMatchObject({ token: expect.stringMatching(/^pet_admin_/), operator: { name: "ann" } });
  const metrics = await cli.json<{ token: string }>("operators create --name prometheus --role metrics");
  const own = await remote("operators rotate 3", metrics.token);
  expect(own.out).toStartWith("Operator 3 prometheus has a new token.");
  expect(own.out).toContain(
    "It reads /metrics on the listener for operators, and cannot sign in: send it as",
  );
  expect(own.out).not.toContain("admin-url");
  expect(await cli.run("operators revoke ann")).toMatchObject({
    code: 0,
    out: "Operator 2 ann is revoked.\n",
  });
  cli.clock.advance(1_000);
  expect(await cli.out("operators revoke 2")).toStartWith("Operator 2 ann was already revoked");
  expect(await cli.out("operators create --name ann --role viewer")).toStartWith("Created operator 4 ann");
  expect(await cli.out("operators update ann --role support")).toStartWith("Operator 4 ann is updated");
  expect(await cli.out("operators list --name ann --json")).toContain('"id": 2');
  expect(await cli.out("operators list --name ann")).not.toContain("prometheus");
  expect(await cli.err("operators revoke admin")).toBe(
    "Operator admin is the last admin whose token does not expire. Create another one first.",
  );
  expect(await cli.err("operators rotate bob")).toStartWith(
    "Operator bob does not exist. See petstore operators list; this is production",
  );
  expect(await cli.out("audit --action operator.revoked")).toContain("operator 2");
});

test("operators update, expire and rotate with an overlap; the list warns", async () => {
  expect(await cli.out("operators update --help")).toContain("petstore operators update NAME [options]");
  await cli.run("operators create --name admin --role admin");
  const created = await cli.run("operators create --name ann --role viewer --expires 8d");
  expect(created.out).toMatch(/^Created operator 2 ann .*; the token expires at 2026-11-23T12:00:00.000Z:/);
  const listed = async () => (await cli.out("operators list")).match(/^2 .*$/m)?.[0].replaceAll(/ +/g, " ");
  const hint = `${tokenIn(created.out).slice(0, 14)}…${tokenIn(created.out).slice(-4)}`;
  const start = `2 ann viewer active ${hint} 2026-11-15T12:00:00Z`;
  expect(await listed()).toBe(`${start} - 2026-11-23T12:00:00Z - 2026-11-15T12:00:00Z`);
  cli.clock.advance(86_400_001);
  expect(await listed()).toContain(" expires at 2026-11-23T12:00:00.000Z ");
  cli.isTerminal = true;
  expect(await listed()).toContain("expires in 6 d");
  cli.isTerminal = false;
  cli.clock.advance(7 * 86_400_000);
  expect(await listed()).toContain("2 ann viewer expired ");

  const update = (line: string) => cli.run(`operators update ${line}`);
  expect(await update("ann --expires 2027-03-31 --role support")).toEqual({
    code: 0,
    out: "Operator 2 ann is updated: role support, the token expires at 2027-03-31T00:00:00.000Z.\n",
    err: "",
  });
  expect((await update("2 --clear expires")).out).toBe(
    "Operator 2 ann is updated: role support, the token does not expire.\n",
  );
  expect(await update("ann --expires 2020-01-01")).toEqual(wrongUsage("--expires must be in the future"));
  expect(await update("ann --expires soon")).toMatchObject({
    code: 2,
    err: expect.stringContaining("a duration from 1s to 3650d such as 90d, a date such as 2027-03-31"),
  });
  expect(await update("ann")).toEqual(wrongUsage("operators update needs --role, --expires or --clear"));
  expect((await update("admin --role viewer")).err).toBe(
    "Operator admin is the last admin whose token does not expire. Create another one first.",
  );

  const rotated = await cli.out("operators rotate ann --overlap 10m");
  expect(rotated).toStartWith(
    "Operator 2 ann has a new token. The earlier one stays valid until 2026-11-23T12:10:00.001Z.\n",
  );
  expect(await listed()).toContain(" 2026-11-23T12:00:00Z 2026-11-23T12:10:00Z - ");
  cli.clock.advance(600_000);
  expect(await listed()).toContain(" 2026-11-23T12:00:00Z - - - ");
  expect((await cli.run("operators rotate ann --overlap 31d")).code).toBe(2);
});

test("a name that cannot be one is a usage error", async () => {
  for (const name of ["token", "7", "Ann"]) {
    const { code, err } = await cli.run(["operators", "create", "--name", name, "--role", "admin"]);
    expect([code, err]).toEqual([2, expect.stringContaining("it must be a letter")]);
  }
  expect((await cli.run("operators create --name ann --role owner")).code).toBe(2);
});
