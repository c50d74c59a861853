import { beforeAll, beforeEach, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Key } from "../../src/operator/operations.ts";
import { hashSecret } from "../../src/domain/secrets.ts";
import { newQuota } from "../../src/domain/rate-limit.ts";
import { bearer } from "../bearer.ts";
import { cleanUpAfterAll, InProcessCli } from "./cli.ts";
import { createKey, paths, saveQuota, sendRequests, showKey, withStores } from "./keys.ts";

cleanUpAfterAll();

let cli: InProcessCli;
beforeEach(() => void (cli = new InProcessCli()));

test("keys list prints an aligned table with short names, oldest key first", async () => {
  const enterprise = ["--plan", "enterprise", "--per-minute", "5", "--per-day", "6"];
  await createKey(cli, "--name", "日本の店", "--plan", "free", "--owner", "ann");
  await createKey(cli, "--name", "b", ...enterprise, "--expires", "1h", "--access", "read");
  expect(await cli.out("keys list")).toBe(
    `ID  NAME      OWNER  PLAN        ACCESS  STATE   MINUTE  DAY     STRIKES  BANNED UNTIL  LAST USED  EXPIRES               CREATED
1   日本の店  ann    free        write   active  0/60    0/1000  0        -             -          -                     2026-11-15T12:00:00Z
2   b         -      enterprise  read    active  0/5     0/6     0        -             -          2026-11-15T13:00:00Z  2026-11-15T12:00:00Z
`,
  );
  const [name, owner] = ["n".repeat(41), "🦊".repeat(41)];
  await createKey(cli, "--name", name, "--plan", "free", "--owner", owner);
  expect(await cli.out("keys list")).toContain(` ${"n".repeat(39)}…  ${"🦊".repeat(19)}…  free `);
  expect(await cli.out("keys show 3")).toContain(`Name         ${name}\nOwner        ${owner}\n`);
});

test("keys show prints one key", async () => {
  const { key } = await createKey(cli);
  expect(await cli.out("keys show 1")).toBe(`Key          1
Name         app
Owner        -
Labels       -
Plan         free: 60 requests per minute, 1,000 per day
Access       write
State        active
Secret       ${key.slice(0, 13)}…${key.slice(-4)}, created at 2026-11-15T12:00:00.000Z
This minute  0 of 60 used
This day     0 of 1,000 used
Strikes      0
Last used    never
Created      2026-11-15T12:00:00.000Z
Expires      never
`);
});

test("no command prints more of a secret again than its first and last four characters, nor its hash", async () => {
  const { key } = await createKey(cli);
  const changes = ["keys update 1 --owner ann", "keys update 1 --plan pro", "keys unban 1", "keys revoke 1"];
  for (const line of ["keys list", "keys show 1", ...changes, "audit"]) {
    for (const json of [[], ["--json"]]) {
      const { code, out } = await cli.run([...line.split(" "), ...json]);
      expect(code).toBe(0);
      expect(out).not.toContain(key.slice(0, 14));
      expect(out).not.toContain(key.slice(-5));
      expect(out).not.toContain(hashSecret(key));
    }
  }
});

test("used quotas, strikes and bans come from the quota store, and a closed window has none", async () => {
  const { id, key } = await createKey(cli);
  const quota = newQuota();
  const request = (requests: number) => sendRequests(cli, id, { requests, strikesToBan: 3, quota });
  request(4);
  expect(await showKey(cli, id)).toMatchObject({ state: "active", strikes: 2, bannedUntil: null });
  const header = "ID  NAME  OWNER  PLAN  ACCESS  STATE   MINUTE  DAY     STRIKES  BANNED UNTIL";
  expect(await cli.out("keys list")).toBe(`${header}  LAST USED  EXPIRES  CREATED
1   app   -      free  write   active  1/60    1/1000  2        -             -          -        2026-11-15T12:00:00Z
`);
  expect(await cli.out("keys show 1")).toBe(`Key          1
Name         app
Owner        -
Labels       -
Plan         free: 60 requests per minute, 1,000 per day
Access       write
State        active
Secret       ${key.slice(0, 13)}…${key.slice(-4)}, created at 2026-11-15T12:00:00.000Z
This minute  1 of 60 used, resets at 2026-11-15T12:01:00.001Z
This day     1 of 1,000 used, resets at 2026-11-16T12:00:00.001Z
Strikes      2
Last used    never
Created      2026-11-15T12:00:00.000Z
Expires      never
`);
  request(1);
  const bannedUntil = "2026-11-15T12:05:00.005Z";
  expect(await showKey(cli, id)).toMatchObject({ state: "banned", bannedUntil });
  expect(await cli.out("keys show 1")).toContain(`\nState        banned until ${bannedUntil}\n`);
  expect(await cli.out("keys list")).toBe(`${header}          LAST USED  EXPIRES  CREATED
1   app   -      free  write   banned  1/60    1/1000  0        2026-11-15T12:05:00Z  -          -        2026-11-15T12:00:00Z
`);

  cli.clock.advance(300_000);
  expect(await showKey(cli, id)).toMatchObject({
    state: "active",
    strikes: 0,
    bannedUntil: null,
    usage: { minute: { used: 0, resetsAt: null }, day: { used: 1 } },
  });
  cli.clock.advance(86_400_000);
  expect((await showKey(cli, id)).usage?.day).toEqual({ used: 0, limit: 1_000, resetsAt: null });
});

test("a damaged quota store: usage is unknown, everything else is shown", async () => {
  await createKey(cli);
  const { quotas: quotaStore } = paths(cli);
  writeFileSync(quotaStore, "no database, ".repeat(100));

  const table = await cli.run("keys list");
  const [warning = ""] = table.out.split("\n");
  expect(table).toMatchObject({ code: 0, err: "" });
  expect(warning).toStartWith(`warning: cannot open the database ${quotaStore}: file is not a database; `);
  expect(warning).toEndWith(" (used quotas, strikes and bans are unknown)");
  expect(table.out).toMatch(/^1 +app +- +free +write +active +\? +\? +\? +\? +- +- +2026-11-15T12:00:00Z$/m);

  const shown = await cli.run("keys show 1");
  expect(shown.out).toContain("\nState        active, unless it is banned\n");
  const { out } = await cli.run("keys show 1 --json");
  expect(JSON.parse(out.slice(out.indexOf("\n")))).toMatchObject({
    state: "active",
    usage: null,
    strikes: null,
    bannedUntil: null,
  });
  const warningsOf = async (line: string) => (await cli.run(line)).out.match(/warning: .*/g) ?? [];
  for (const line of ["keys list", "keys list --banned", "keys list --used-percent 80", "keys show 1"])
    expect(await warningsOf(line)).toEqual([warning]);
  for (const line of ["pets list", "plans list", "operators list", "audit"])
    expect(await warningsOf(line)).toEqual([]);
});

test("damage that only a read finds is reported with the file", async () => {
  const { id } = await createKey(cli);
  saveQuota(cli, id, newQuota());
  const { quotas: quotaStore } = paths(cli);
  // Opening reads the first pages; the table is on the last one.
  const bytes = readFileSync(quotaStore);
  bytes.fill(0xff, bytes.length - 4096);
  writeFileSync(quotaStore, bytes);
  for (const flags of ["", " --banned", " --used-percent 80"]) {
    const { code, out } = await cli.run(`keys list${flags}`);
    expect(code).toBe(0);
    expect(out).toContain(`in ${quotaStore}: database disk image is malformed; `);
    expect(out).toContain(" (used quotas, strikes and bans are unknown)\n");
  }
});

const idsWith = async (flags: string) => (await filled.json<Key[]>(`keys list ${flags}`)).map(({ id }) => id);

const filled = new InProcessCli();
beforeAll(async () => {
  const shop = ["--name", "shop", "--plan", "free", "--owner", "ann", "--label", "eu,web"];
  await createKey(filled, ...shop, "--expires", "5d");
  filled.clock.advance(86_400_000);
  const reports = ["--name", "reports", "--plan", "pro", "--owner", "bob", "--label", "eu"];
  await createKey(filled, ...reports, "--access", "read");
  await createKey(filled, "--name", "old", "--plan", "pro");
  await filled.run("keys revoke 3");
});

test.each([
  ["--state active --plan pro", [2]],
  ["--label eu", [1, 2]],
  ["--label eu --label web", [1]],
  ["--unused-since 1h", [1]],
  ["--unused-since 2026-11-16", [1]],
  ["--unused-since 2026-11-15T12:00:00Z", []],
  ["--banned", []],
  ["--order asc", [1, 2]],
  ["--revoked --sort name", [2, 1, 3]],
  ["--state revoked", [3]],
  ["--expires-before 7d", [1]],
  ["--expires-before 1h", []],
] as const)("keys list %s", async (flags, expected) => {
  expect(await idsWith(flags)).toEqual([...expected]);
});

test("keys list says how many revoked keys are hidden", async () => {
  expect(await filled.out("keys list")).toEndWith("Z\n1 revoked key is hidden; --revoked lists it.\n");
  expect(await filled.out("keys list --search old")).toBe(
    `There are no such keys in production (data: ${filled.dataDir}).\n1 revoked key is hidden; --revoked lists it.\n`,
  );
  for (const flags of ["--revoked", "--search shop", "--state active", "--label eu"])
    expect(await filled.out(`keys list ${flags}`)).not.toContain("hidden");
});

test("with --revoked, keys list has all keys, as many as the tab All of the console", async () => {
  await using server = await filled.serve();
  const token = readFileSync(join(filled.dataDir, "production-admin-token"), "utf8").trim();
  const headers = bearer(token);
  const { counts, total } = Object(await (await fetch(`${server.adminUrl}/api/keys`, { headers })).json());
  const all = Object.values<number>(counts).reduce((sum, count) => sum + count, 0);
  expect([total, (await idsWith("--revoked")).length]).toEqual([all, all]);
  expect(await filled.out("keys list --help")).toContain("all that are not revoked");
});

test("keys list says that none matches, and --banned lists the keys that are banned now", async () => {
  expect(await filled.out("keys list --search tablet")).toBe(
    `There are no such keys in production (data: ${filled.dataDir}).\n`,
  );

  sendRequests(filled, 2, {});
  expect(await idsWith("--banned")).toEqual([2]);
  expect(await idsWith("--state banned")).toEqual([2]);
});

test("the last use comes from the usage history", async () => {
  const lastUsedAt = filled.clock.now();
  const keys = [{ keyId: 1, admitted: 1, limited: 0, banned: 0, errors: 0, lastUsedAt, byOperation: [] }];
  const batch = { writer: "test", sequence: 1, hour: lastUsedAt, keys };
  await withStores(filled, ({ usageHistory }) => usageHistory.addUsage(batch));
  expect((await filled.json<Key[]>("keys list --revoked")).map((key) => key.lastUsedAt)).toEqual([
    "2026-11-16T12:00:00.004Z",
    null,
    null,
  ]);
  expect(await filled.out("keys show 1")).toContain("\nLast used    2026-11-16T12:00:00.004Z\n");
  expect(await idsWith("--unused-since 1h")).toEqual([]);
  filled.clock.advance(3_600_001);
  expect(await idsWith("--unused-since 1h --revoked")).toEqual([1, 2, 3]);
});
