import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUp, InProcessCli, temporaryDirectory } from "./cli.ts";

afterAll(cleanUp);

const TOKEN = "petadmin_0123456789abcdefghijklmnopqrstuvwxyz";

/** A server with an admin listener, and the flags with which commands elsewhere reach it. */
async function elsewhere() {
  const tokenFile = join(temporaryDirectory(), "token");
  writeFileSync(tokenFile, TOKEN, { mode: 0o600 });
  const server = await new InProcessCli().serve(["--admin-token-file", tokenFile]);
  const { origin } = new URL(server.adminUrl);
  return { server, origin, flags: ["--server", origin, "--admin-token-file", tokenFile] };
}

test("--server: commands print the same as on the machine of the server", async () => {
  const { server, origin, flags } = await elsewhere();
  const cli = new InProcessCli();
  const run = (...argv: string[]) => cli.run([...argv, ...flags]);
  const created = await cli.json<{ id: number; key: string }>(
    "keys",
    "create",
    "--name",
    "a",
    "--plan",
    "pro",
    ...flags,
  );
  const status = async () =>
    (await fetch(`${server.url}/pets`, { headers: { Authorization: `Bearer ${created.key}` } })).status;
  expect(await status()).toBe(200);
  const id = String(created.id);
  expect((await run("keys", "disable", id)).out).toStartWith(`Key ${id} is disabled.`);
  expect(await status()).toBe(401);
  expect((await run("keys", "enable", id)).out).toBe(`Key ${id} is enabled.\n`);
  expect(await status()).toBe(200);
  expect((await run("keys", "list", "--plan", "pro")).out).toMatch(/^ID +NAME.*\n\d+ +a +- +pro /);
  expect((await run("keys", "show", "99")).err).toBe(
    `key 99 does not exist in ${origin}; see petstore keys list`,
  );
  expect((await run("keys", "create", "--name", "b", "--plan", "enterprise")).err).toBe(
    "--per-minute and --per-day must be given for the enterprise plan: each key has its own limits",
  );
  const audit = await cli.json<{ action: string }[]>("audit", "--key", id, ...flags);
  expect(audit.map(({ action }) => action)).toEqual(["key.enabled", "key.disabled", "key.created"]);
  expect((await run("pets", "list")).out).toContain("There are no pets");
  const servers = await run("servers", "list");
  expect(servers.out).toMatch(/^NAME +ADMIN URL +VERSION .*\n\S+ +http:\S+ +1\.1\.0 +\S+ +\d+\.\d +3 +0 /);
  expect(await cli.run(["servers", "list"])).toMatchObject({
    code: 1,
    err: "without Valkey, servers have no register; use --server",
  });
  await server.stop();
});

test("--server: no token, a wrong token and no server are told apart", async () => {
  const { server, origin, flags } = await elsewhere();
  const cli = new InProcessCli();
  expect(await cli.run(["keys", "list", "--server", origin])).toMatchObject({
    code: 2,
    err: `${origin} needs a token: run petstore login ${origin}, or set PETSTORE_TOKEN or --admin-token-file`,
  });
  expect(await cli.run(["keys", "list", "--server", origin, "--admin-token", "x".repeat(20)])).toMatchObject({
    code: 1,
    err: expect.stringContaining("the token is wrong or was replaced"),
  });
  await server.stop();
  expect(await cli.run(["keys", "list", ...flags])).toMatchObject({
    code: 1,
    err: expect.stringContaining(`${origin} does not respond`),
  });
});
