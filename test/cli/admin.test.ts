import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chownSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  cleanUp,
  InProcessCli,
  type InProcessServer,
  resultOf,
  spawnPetstore,
  temporaryDirectory,
} from "./cli.ts";

// A busy machine takes long.
setDefaultTimeout(60_000);
afterAll(cleanUp);

const TOKEN = "a-token-of-the-operators";

const get = (server: InProcessServer, path: string, token: string) =>
  fetch(server.adminUrl + path, { headers: { Authorization: `Bearer ${token}` } });
const status = async (server: InProcessServer, token: string) =>
  (await get(server, "/api/keys", token)).status;

/** Resolves when the server takes the token. */
async function untilAccepted(server: InProcessServer, token: string): Promise<void> {
  while ((await status(server, token)) !== 200) await Bun.sleep(10);
}

async function itemsOf(server: InProcessServer, path: string, token: string): Promise<{ name: string }[]> {
  return Object(await (await get(server, path, token)).json()).items;
}

const tokenFileOf = ({ dataDir }: InProcessCli) => join(dataDir, "production-admin-token");
const tokenOf = (cli: InProcessCli) => readFileSync(tokenFileOf(cli), "utf8").trim();

describe("the admin token", () => {
  test("is made at the first start, kept for its owner alone, and used again", async () => {
    const cli = new InProcessCli();
    const first = await cli.serve();
    const token = tokenOf(cli);
    expect(token).toMatch(/^pet_admin_[\w-]{43}$/);
    expect(statSync(tokenFileOf(cli)).mode & 0o777).toBe(0o600);
    expect(first.startMessage).toContain(`  Admin        ${first.adminUrl} (token in ${tokenFileOf(cli)})\n`);
    expect(await status(first, token)).toBe(200);
    await first.stop();
    expect(first.startMessage + first.lines.join("\n")).not.toContain("pet_admin_");

    cli.isTerminal = true;
    const second = await cli.serve();
    expect(second.startMessage).toMatch(
      new RegExp(`^  Admin +http://127\\.0\\.0\\.1:\\d+/\\?token=${token}$`, "m"),
    );
    expect(tokenOf(cli)).toBe(token);
    await second.stop();
  });

  test("of a variable is used, and no file is made", async () => {
    const cli = new InProcessCli();
    const server = await cli.serve(["--host", "localhost"], { PETSTORE_ADMIN_TOKEN: TOKEN });
    expect(server.startMessage).toContain(`  Admin        ${server.adminUrl}\n`);
    expect(await status(server, TOKEN)).toBe(200);
    expect(existsSync(tokenFileOf(cli))).toBeFalse();
    const settings = await itemsOf(server, "/api/settings", TOKEN);
    expect(settings).toContainEqual(
      expect.objectContaining({ name: "admin-token", value: "…", source: "variable" }),
    );
    expect(settings).toContainEqual(
      expect.objectContaining({ name: "host", value: "localhost", source: "flag", default: "127.0.0.1" }),
    );
    expect(settings).toContainEqual(
      expect.objectContaining({
        name: "ban-length",
        value: "5m",
        source: "default",
        variable: "PETSTORE_BAN_LENGTH",
      }),
    );
    await server.stop();
    expect(server.lines.join("\n")).not.toContain(TOKEN);
  });

  test("of a file is read again when the file is replaced, and the source is the env file", async () => {
    const folder = temporaryDirectory();
    const file = join(folder, "token");
    writeFileSync(file, `${TOKEN}\n`);
    writeFileSync(join(folder, "env"), `PETSTORE_ADMIN_TOKEN_FILE=${file}\n`);
    const server = await new InProcessCli().serve(["--env-file", join(folder, "env")]);
    expect(await status(server, TOKEN)).toBe(200);
    expect(await itemsOf(server, "/api/settings", TOKEN)).toContainEqual(
      expect.objectContaining({ name: "admin-token", value: "…", source: "env file" }),
    );
    writeFileSync(`${file}.new`, "the-next-token-of-the-operators\n");
    renameSync(`${file}.new`, file);
    await untilAccepted(server, "the-next-token-of-the-operators");
    expect(await status(server, TOKEN)).toBe(401);
    await server.stop();
  });
});

describe("admin-token rotate", () => {
  test("a running server takes the new token, and every session ends", async () => {
    const cli = new InProcessCli();
    const server = await cli.serve();
    const old = tokenOf(cli);
    const session = await fetch(`${server.adminUrl}/api/session`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: old }),
    });
    const Cookie = (session.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const withCookie = () => fetch(`${server.adminUrl}/api/keys`, { headers: { Cookie } });
    expect((await withCookie()).status).toBe(200);

    expect(await cli.run("admin-token rotate")).toEqual({
      code: 0,
      out: `Replaced the admin token in ${tokenFileOf(cli)}. The server at ${server.adminUrl} accepts it, and everybody is signed out.\nSign in again with the URL that petstore admin-url prints.\n`,
      err: "",
    });
    const next = tokenOf(cli);
    expect(next).not.toBe(old);
    expect(statSync(tokenFileOf(cli)).mode & 0o777).toBe(0o600);
    expect([await status(server, next), await status(server, old), (await withCookie()).status]).toEqual([
      200, 401, 401,
    ]);
    expect<object[]>(await itemsOf(server, "/api/audit?action=admin.token-rolled", next)).toMatchObject([
      { actor: { kind: "command line" } },
    ]);
    await server.stop();
  });

  test("fails if the running server does not take the new token", async () => {
    const cli = new InProcessCli();
    const server = await cli.serve([], { PETSTORE_ADMIN_TOKEN: TOKEN });
    expect(await cli.run("admin-token rotate")).toEqual({
      code: 1,
      out: "",
      err: `${tokenFileOf(cli)} has a new admin token, and the server at ${server.adminUrl} still rejects it: it cannot read the file, or has its token from elsewhere; see its log, and replace the token there`,
    });
    await server.stop();
  });

  test("root leaves the file to the owner of the directory, and says that no server runs", async () => {
    const cli = new InProcessCli();
    await cli.run(["keys", "create", "--name", "app", "--plan", "free"]);
    const owner = process.getuid?.() === 0 ? 65_534 : (process.getuid?.() ?? 0);
    chownSync(cli.dataDir, owner, process.getgid?.() ?? 0);
    expect(await cli.run("admin-token rotate")).toEqual({
      code: 0,
      out: `Replaced the admin token in ${tokenFileOf(cli)}. No server runs here; the next one takes it.\n`,
      err: "",
    });
    expect(statSync(tokenFileOf(cli))).toMatchObject({ uid: owner });
  });

  test("a token of a variable is replaced there", async () => {
    expect(await new InProcessCli().run(["admin-token", "rotate", "--admin-token", TOKEN])).toMatchObject({
      code: 1,
      err: "the admin token is set by --admin-token; replace it there, and a server that reads it from a file takes it within a second",
    });
  });
});

test("admin-url prints the URL that signs in, and fails when no server runs", async () => {
  const cli = new InProcessCli();
  const server = await cli.serve();
  const url = `${server.adminUrl}/?token=${tokenOf(cli)}\n`;
  expect(await cli.run("admin-url")).toEqual({ code: 0, out: url, err: "" });
  // It asks the server itself, whatever proxy the environment names.
  const proxy = "http://127.0.0.1:1";
  const variables = { PETSTORE_DATA: cli.dataDir, HTTP_PROXY: proxy, http_proxy: proxy };
  expect(await resultOf(spawnPetstore(["admin-url"], { variables }))).toEqual({ code: 0, out: url, err: "" });
  expect((await cli.run("admin-url --env staging")).err).toBe(
    `no server with a listener for operators runs in staging (data: ${cli.dataDir}); start it with petstore serve`,
  );
  await server.stop();
  expect((await cli.run("admin-url")).code).toBe(1);
  // As a server that was killed leaves it.
  writeFileSync(join(cli.dataDir, "production-admin-url"), server.adminUrl);
  expect(await cli.run("admin-url")).toMatchObject({
    code: 1,
    err: `no server responds at ${server.adminUrl}; start it with petstore serve`,
  });
});

test("--admin-address that is taken is an error, and off turns the listener off", async () => {
  const server = await new InProcessCli().serve();
  const { host, port } = new URL(server.adminUrl);
  const cli = new InProcessCli();
  expect(await cli.run(["serve", "--port", "0", "--admin-address", host])).toEqual({
    code: 1,
    out: "",
    err: `cannot listen for operators on 127.0.0.1 port ${port}: the port is in use; stop the other program or choose another --admin-address`,
  });
  const off = await cli.serve(["--admin-address", "off"]);
  expect(off.startMessage).toContain("  Admin        off\n");
  await server.stop();
  await off.stop();
});
