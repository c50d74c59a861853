import { afterAll, beforeAll, expect, test } from "bun:test";
import { postgresUrl } from "../../harness/postgres.ts";
import type { Server } from "../../harness/server.ts";
import { startValkey } from "../../harness/valkey.ts";
import { serve } from "./serving.ts";
import { cleanUp, petstore, temporaryFolder } from "./workbench.ts";

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

test("servers and commands say where PostgreSQL and Valkey are, and not who may use them", async () => {
  const place = ["--database-url", database, "--limits-url", `${limits}/2`];
  const postgres = `PostgreSQL at ${host(database)}${new URL(database).pathname}`;
  const empty = await petstore("keys", "list", ...place);
  expect(empty.out).toStartWith(`No keys yet in production at ${postgres}. Make one: `);
  expect((await petstore("keys", "show", "7", ...place)).err).toContain(`in production at ${postgres}; see`);

  const { greeting, stop, log } = await serve(temporaryFolder(), ...place);
  expect(greeting).toContain(`\n  Data       ${postgres}\n  Limits     Valkey at ${host(valkey.url)}/2\n`);
  expect(await stop("SIGTERM")).toBe(0);
  const [serving = ""] = await log();
  expect(serving).toContain(`"store":"${postgres}","limits":"Valkey at ${host(valkey.url)}/2"`);
  expect(greeting + serving).not.toContain("s3cret");
  expect(greeting + serving).not.toContain(new URL(database).username + "@");
}, 20_000);

test.each([
  ["a wrong password", (url: string) => url.replace("s3cret", "not-it"), "WRONGPASS"],
  ["no password", (url: string) => url.replace(":s3cret@", ""), "NOAUTH"],
  ["a database that is not there", (url: string) => `${url}/4`, "ERR DB index is out of range"],
  [
    "a server in place of a cluster",
    (url: string) => `${url},${url}`,
    "ERR This instance has cluster support",
  ],
])("%s is not taken for a Valkey that is away", async (_name, change, reason) => {
  const { stop, log } = await serve(temporaryFolder(), "--limits-url", change(limits));
  expect(await stop("SIGTERM")).toBe(0);
  const [line = ""] = await log();
  expect(line).toContain(` warn Valkey cannot be used (${reason}`);
  expect(line).toEndWith("); limits are counted by each server on its own meanwhile");
});

test("a Valkey that is away is told in one line, without a stack of ours", async () => {
  const { stop, log } = await serve(temporaryFolder(), "--limits-url", "redis://127.0.0.1:1");
  expect(await stop("SIGTERM")).toBe(0);
  const [line = ""] = await log();
  expect(line).toEndWith(
    ' warn Valkey is away; limits are counted by each server on its own until it is back {"cause":"connect ECONNREFUSED 127.0.0.1:1"}',
  );
});

test("without Valkey a ban is neither known nor lifted, and nothing says otherwise", async () => {
  const data = temporaryFolder();
  const at = ["--data", data];
  const create = ["create", "--name", "app", "--plan", "enterprise", "--per-minute", "1", "--per-day", "9"];
  const bans = ["--ban-strikes", "1", "--ban-grace", "0", "--ban-length", "1h"];
  const { key } = JSON.parse((await keys(...create, "--json", ...at)).out);
  const { url, stop } = await serve(data, "--limits-url", limits, "--limits-timeout", "1s", ...bans);
  let answer = "";
  while (!answer.includes("key_banned")) {
    answer = await (await fetch(`${url}/pets`, { headers: { Authorization: `Bearer ${key}` } })).text();
  }
  expect(await stop("SIGTERM")).toBe(0);
  const show = async () => JSON.parse((await keys("show", "1", "--json", ...at, ...bans)).out);
  expect(await show()).toMatchObject({ state: "banned", bannedUntil: expect.any(String) });

  valkey.freeze();
  const away = `petstore: Valkey at ${host(valkey.url)} cannot be used: no answer within 500 ms`;
  const listed = await keys("list", ...at);
  expect(listed.err).toBe(`${away} (so use, strikes and bans are not known)\n`);
  expect(listed.out).toMatch(/^1 +app +enterprise +active +\? +\? +\? +\? +- /m);
  expect(await show()).toMatchObject({ state: "active", use: null, strikes: null, bannedUntil: null });
  expect(await keys("unban", "1", ...at)).toEqual({
    code: 1,
    out: "",
    err: `${away}; servers that run now lift the ban on their own and tell Valkey when it is back; if none does, run this again then\n`,
  });
  valkey.thaw();

  // No server was running, so nobody has told it.
  expect(await show()).toMatchObject({ state: "banned" });
  expect(await keys("unban", "1", ...at)).toMatchObject({ code: 0, err: "" });
  expect(await show()).toMatchObject({ state: "active", strikes: 0, bannedUntil: null });
}, 20_000);
