import { beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { cleanUpAfterAll, InProcessCli } from "../cli/cli.ts";
import { fillData } from "./sample-data.ts";

cleanUpAfterAll();

let cli: InProcessCli;
let backups: string;
beforeEach(async () => {
  cli = new InProcessCli();
  backups = join(cli.dataDir, "../backups");
  await fillData(cli.dataDir);
});

const run = (...argv: string[]) => cli.run(argv);

/** What a restore prints that succeeds. */
async function restored(from: string): Promise<string> {
  const { code, out } = await run("restore", from, "--replace");
  expect(code).toBe(0);
  return out;
}

interface KeyJson {
  readonly id: number;
  readonly state: string;
  readonly plan: string;
  readonly limits: { readonly perMinute: number; readonly perDay: number };
}

test("a restore names the keys that were restricted since, with commands that work in their order", async () => {
  for (const name of ["third", "fourth", "fifth", "sixth"])
    await run("keys", "create", "--name", name, "--plan", "free", "--expires", "90d");
  const own = ["--plan", "enterprise", "--per-minute", "500", "--per-day", "90"];
  for (const name of ["7", "8", "9"]) await run("keys", "create", "--name", name, ...own);
  await run("keys", "create", "--name", "10", "--plan", "pro");
  cli.clock.advance(60_000);
  const { path } = await cli.json<{ path: string }>("backup", backups);
  for (const line of [
    "disable 2",
    "rotate 3 --overlap 0",
    "update 3 --access read --expires 1h",
    "disable 3",
    "update 4 --expires 30d",
    // What allows more, or the same, is not named.
    "update 5 --name other --clear expires --plan business",
    "update 7 --plan free",
    "update 8 --per-minute 499 --per-day 90",
    // Both limits are higher.
    "update 9 --plan business",
    "update 10 --plan enterprise --per-minute 300 --per-day 122",
    // A key that is revoked needs nothing else.
    "disable 6",
    "update 6 --access read --expires 1h",
    "rotate 6 --overlap 0",
    "revoke 6",
  ])
    expect((await run("keys", ...line.split(" "))).code).toBe(0);
  cli.clock.advance(86_400_000);
  const plan = await run("restore", path, "--replace", "--dry-run", "--json");
  expect(JSON.parse(plan.out.slice(0, plan.out.lastIndexOf("}") + 1))).toMatchObject({
    keysRevokedSince: [6],
    keysRotatedSince: [3],
    keysWithLowerLimitsSince: [7, 8, 10],
    keysMadeReadOnlySince: [3],
    keysDisabledSince: [2, 3],
    keysExpiringEarlierSince: [
      { id: 3, expiresAt: "2026-11-15T13:01:00.000Z" },
      { id: 4, expiresAt: "2026-12-15T12:01:00.000Z" },
    ],
  });
  const states = async () =>
    (await cli.json<KeyJson[]>("keys", "list", "--revoked")).toSorted((a, b) => a.id - b.id);
  const before = await states();
  const out = await restored(path);
  const lines = out.split("\n").filter((line) => line.startsWith("warning: "));
  expect(lines).toEqual([
    "warning: keys revoked since the backup are valid again: run petstore keys revoke 6",
    "warning: secrets replaced since are valid again, and the new ones are not: run petstore keys rotate 3 --overlap 0",
    "warning: keys whose limits were lowered since have the earlier ones again: run petstore keys update 7 --plan free; petstore keys update 8 --plan enterprise --per-minute 499 --per-day 90; petstore keys update 10 --plan enterprise --per-minute 300 --per-day 122",
    "warning: keys made read-only since can write again: run petstore keys update 3 --access read",
    "warning: keys disabled since are valid again: run petstore keys disable 2; petstore keys disable 3",
    "warning: keys whose expiry was moved to an earlier time since are valid for longer again: run petstore keys update 3 --expires 1s; petstore keys update 4 --expires 2505600s",
  ]);
  for (const [, command = ""] of out.matchAll(/petstore (keys [^;\n]+)/g))
    expect((await run(...command.split(" "))).code).toBe(0);
  cli.clock.advance(2_000);
  const stateOf = ({ state }: KeyJson) => state;
  const after = await states();
  expect(after.map(stateOf)).toEqual(before.map(stateOf));
  expect(before.map(stateOf).slice(0, 6)).toEqual([
    "active",
    "disabled",
    "expired",
    "active",
    "active",
    "revoked",
  ]);
  const limits = ({ plan, limits: { perMinute, perDay } }: KeyJson) => [plan, perMinute, perDay];
  for (const id of [7, 8, 10])
    expect(limits(after[id - 1] as KeyJson)).toEqual(limits(before[id - 1] as KeyJson));
});

test("a restore names plans and ban rules that were made stricter since, with commands that work", async () => {
  await run("plans", "update", "pro", "--per-minute", "200");
  await run("ban-rules", "update", "--length", "1m");
  const { path } = await cli.json<{ path: string }>("backup", backups);
  for (const line of [
    "plans update free --per-day 500",
    "plans update anonymous --per-minute 100 --per-day 9000",
    // What allows more is not named.
    "plans update pro --per-minute 250",
    "plans update business --per-day 200000",
    "ban-rules update --strikes 3 --grace 1500ms --length 30s --max-length 90s",
  ])
    expect((await run(...line.split(" "))).code).toBe(0);
  const policy = async () => [await cli.json("plans", "list"), await cli.json("ban-rules", "show")];
  const stricter = await policy();
  const plan = await run("restore", path, "--replace", "--dry-run", "--json");
  expect(JSON.parse(plan.out.slice(0, plan.out.lastIndexOf("}") + 1))).toMatchObject({
    plansLoweredSince: [
      { name: "free", perMinute: 60, perDay: 500 },
      { name: "anonymous", perMinute: 100, perDay: 9_000 },
    ],
    stricterBanRulesSince: { strikes: 3, graceMs: 1_500, lengthMs: 30_000, maxLengthMs: 90_000 },
  });
  const out = await restored(path);
  expect(out.split("\n").filter((line) => line.startsWith("warning: "))).toEqual([
    "warning: plans whose limits were lowered since have the earlier ones again: run petstore plans update free --per-minute 60 --per-day 500; petstore plans update anonymous --per-minute 100 --per-day 9000",
    "warning: ban rules that were made stricter since are the earlier ones again: run petstore ban-rules update --strikes 3 --grace 1500ms --length 30s --max-length 90s",
  ]);
  expect(await policy()).not.toEqual(stricter);
  for (const [, command = ""] of out.matchAll(/petstore ((?:plans|ban-rules) [^;\n]+)/g))
    expect((await run(...command.split(" "))).code).toBe(0);
  await run("plans", "update", "pro", "--per-minute", "250");
  await run("plans", "update", "business", "--per-day", "200000");
  expect(await policy()).toEqual(stricter);
});
