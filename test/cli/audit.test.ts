import { beforeAll, expect, test } from "bun:test";
import { AUDIT_TARGET_KINDS } from "../../src/domain/audit.ts";
import { ADMIN_API } from "../../src/operator/operations.ts";
import { cleanUpAfterAll, InProcessCli, wrongUsage } from "./cli.ts";
import { createKey, FREE_KEY } from "./keys.ts";

cleanUpAfterAll();

const cli = new InProcessCli();
beforeAll(async () => {
  await createKey(cli, ...FREE_KEY, "--owner", "bob");
  cli.clock.advance(3_600_000);
  await createKey(cli);
  await cli.run("keys update 1 --plan pro");
  cli.clock.advance(3_600_000);
  await cli.run("keys update 1 --label eu --label web --clear owner");
  await cli.run("keys revoke 2");
});

test("audit: a table, newest first, with the user and each change", async () => {
  const { code, out } = await cli.run("audit");
  expect(code).toBe(0);
  expect(out.replaceAll(/pet_live_\w{4}…\w{4}/g, "HINT")).toBe(
    `TIME                      ACTION       TARGET  ACTOR               CHANGES
2026-11-15T14:00:00.000Z  key.revoked  key 2   command line (ann)  revokedAt: none → 2026-11-15T14:00:00.000Z
2026-11-15T14:00:00.000Z  key.updated  key 1   command line (ann)  owner: bob → none, labels: none → eu web
2026-11-15T13:00:00.000Z  key.updated  key 1   command line (ann)  plan: free → pro
2026-11-15T13:00:00.000Z  key.created  key 2   command line (ann)  name: app, plan: free, access: write, hint: HINT
2026-11-15T12:00:00.000Z  key.created  key 1   command line (ann)  name: app, owner: bob, plan: free, access: write, hint: HINT
`,
  );
});

test("audit --json: every field, null where there is no value; --actor takes what it prints", async () => {
  const [revoked, updated] = await cli.json<unknown[]>("audit");
  expect(revoked).toEqual({
    id: 5,
    at: "2026-11-15T14:00:00.000Z",
    actor: { operator: null, kind: "command line", name: "ann" },
    action: "key.revoked",
    target: { kind: "key", id: 2 },
    before: { revokedAt: null },
    after: { revokedAt: "2026-11-15T14:00:00.000Z" },
  });
  expect(updated).toMatchObject({
    before: { owner: "bob", labels: [] },
    after: { owner: null, labels: ["eu", "web"] },
  });
  expect(await cli.json("audit", "--actor", "command line", "--key", "2")).toHaveLength(2);
});

test.each([
  ["--action key.created", [2, 1]],
  ["--actor command-line --key 2", [5, 2]],
  ["--actor server", []],
  ["--since 2026-11-15T13:00:00Z --until 2026-11-15T14:00:00Z", [3, 2]],
  ["--since 30m", [5, 4]],
  ["--until 1h", [1]],
  ["--limit 5", [5, 4, 3, 2, 1]],
  ["--pet 1", []],
  ["--order 1", []],
] as const)("audit %s", async (flags, expected) => {
  const entries = await cli.json<{ id: number }[]>(`audit ${flags}`);
  expect(entries.map(({ id }) => id)).toEqual([...expected]);
});

test("audit has a flag for every condition of the API and takes every kind of target", async () => {
  const conditions = Object.keys(ADMIN_API.operations.listAudit.query).filter((name) => name !== "cursor");
  const help = await cli.out("audit --help");
  for (const name of conditions) expect(help).toContain(`  --${name} `);
  const other = new InProcessCli();
  await other.run("operators create --name ann --role viewer");
  await other.run("operators create --name bob --role viewer");
  const created = await other.json<{ target: { kind: string; id: number } }[]>(
    "audit --action operator.created",
  );
  const [bob, ann] = created.map(({ target }) => target.id);
  const found = async (flags: string) =>
    (await other.json<{ target: { id: number } | null }[]>(`audit ${flags}`)).map(({ target }) => target?.id);
  expect(await found(`--target operator:${bob}`)).toEqual([bob]);
  expect(await found(`--target operator:${ann} --action operator.created`)).toEqual([ann]);
  for (const kind of AUDIT_TARGET_KINDS) expect(await found(`--target ${kind}:99`)).toEqual([]);
  expect(await found("--operator bob")).toEqual([]);
  expect(await cli.run("audit --target key:1 --pet 2")).toEqual(
    wrongUsage("--pet and --target exclude each other; use one of them"),
  );
});

test("audit --limit: warns that there are more", async () => {
  const { out } = await cli.run("audit --limit 2");
  expect(out.split("\n").slice(3)).toEqual([
    "warning: more audit entries follow; raise --limit, up to 10000, or set --since and --until",
    "",
  ]);
});
