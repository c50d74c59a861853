import { beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { AUDIT_TARGET_KINDS } from "../../src/domain/audit.ts";
import { ADMIN_OPERATIONS } from "../../src/operator/operations.ts";
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
    `TIME                      ACTION       TARGET     ACTOR               CHANGES
2026-11-15T14:00:00.000Z  key.revoked  key 2 app  command line (ann)  revokedAt: none → 2026-11-15T14:00:00.000Z
2026-11-15T14:00:00.000Z  key.updated  key 1 app  command line (ann)  owner: bob → none, labels: none → eu web
2026-11-15T13:00:00.000Z  key.updated  key 1 app  command line (ann)  plan: free → pro
2026-11-15T13:00:00.000Z  key.created  key 2 app  command line (ann)  name: app, plan: free, access: write, hint: HINT
2026-11-15T12:00:00.000Z  key.created  key 1 app  command line (ann)  name: app, owner: bob, plan: free, access: write, hint: HINT
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
    target: { kind: "key", id: 2, name: "app" },
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
  const conditions = Object.keys(ADMIN_OPERATIONS.listAudit.query).filter((name) => name !== "cursor");
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

test("a rotation is stored and in JSON under its first name, and shown by the name of today", async () => {
  const other = new InProcessCli();
  await createKey(other);
  await other.run("keys rotate 1");
  for (const name of ["key.rotated", "key.rolled"]) {
    expect(await other.out(`audit --action ${name}`)).toContain("Z  key.rotated  key 1 app");
    expect(await other.json(`audit --action ${name}`)).toMatchObject([{ action: "key.rolled" }]);
  }
});

test("audit --limit: warns that there are more", async () => {
  const { out } = await cli.run("audit --limit 2");
  expect(out.split("\n").slice(3)).toEqual([
    "warning: more audit entries follow; raise --limit, up to 10000, or set --since and --until",
    "",
  ]);
});

test("audit --after: the entries after one, oldest first, with the other conditions", async () => {
  const idsOf = async (flags: string) =>
    (await cli.json<{ id: number }[]>(`audit ${flags}`)).map(({ id }) => id);
  expect(await idsOf("--after 2")).toEqual([3, 4, 5]);
  expect(await idsOf("--after 1 --key 2")).toEqual([2, 5]);
  expect(await idsOf("--after 5")).toEqual([]);
});

/** Runs `audit --follow` until a line has the text. */
function follow(followed: InProcessCli, line: string, end: string) {
  const lines: string[] = [];
  const waiting: { text: string; resolve: () => void }[] = [];
  const print = async (text: string | Uint8Array) => {
    lines.push(...String(text).trimEnd().split("\n"));
    for (const each of waiting) if (lines.some((printed) => printed.includes(each.text))) each.resolve();
    if (lines.at(-1)?.includes(end)) throw new Error("seen");
  };
  const ended = followed.run(line, {}, { print }).catch(() => {});
  const seen = (text: string) => new Promise<void>((resolve) => waiting.push({ text, resolve }));
  return { lines, ended, seen };
}

test("audit --follow: the last entries, then new ones of any process, oldest first and each once", async () => {
  const followed = new InProcessCli();
  for (const name of ["one", "two", "three"]) await createKey(followed, "--name", name, "--plan", "free");
  const { lines, ended, seen } = follow(followed, "audit --follow --limit 2 --json", "five");
  await seen("three");
  await createKey(followed, "--name", "four", "--plan", "free");
  await seen("four");
  // A clock that is behind: entries follow in the order in which they are written.
  followed.clock.advance(-60_000);
  await createKey(followed, "--name", "five", "--plan", "free");
  await ended;
  const names = lines.map((line) => JSON.parse(line).after.name);
  expect(names).toEqual(["two", "three", "four", "five"]);
});

test("audit --follow prints text without --json, and only what meets the conditions", async () => {
  const followed = new InProcessCli();
  await createKey(followed);
  const { lines, ended, seen } = follow(followed, "audit --follow --action key.revoked --after 0", "key 2");
  await createKey(followed);
  await followed.run("keys revoke 1");
  await seen("key 1");
  await followed.run("keys revoke 2");
  await ended;
  expect(lines).toEqual(
    [1, 2].map(
      (id) =>
        `2026-11-15T12:00:00.000Z  key.revoked  key ${id} app  command line (ann)  revokedAt: none → 2026-11-15T12:00:00.000Z`,
    ),
  );
});

test("audit --follow prints what is written between its first requests", async () => {
  const followed = new InProcessCli();
  await createKey(followed);
  const tokenFile = join(followed.dataDir, "token");
  writeFileSync(tokenFile, "petadmin_0123456789abcdefghijklmnopqrstuvwxyz", { mode: 0o600 });
  await using server = await followed.serve(["--admin-token-file", tokenFile]);
  // The entry is the newest one, also by the clock of the machine.
  followed.clock.advance(Date.now());
  let isFirst = true;
  await using between = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch({ url, headers }) {
      const { pathname, search } = new URL(url);
      const Authorization = headers.get("Authorization") ?? "";
      const response = await fetch(new URL(pathname + search, server.adminUrl), {
        headers: { Authorization },
      });
      const wasFirst = isFirst && pathname.endsWith("/audit");
      if (wasFirst) isFirst = false;
      if (wasFirst) await createKey(followed);
      return response;
    },
  });
  const remote = `--server ${between.url.origin} --admin-token-file ${tokenFile}`;
  const { lines, ended } = follow(new InProcessCli(), `audit --follow --key 2 ${remote}`, "key 2");
  await ended;
  expect(lines).toEqual([expect.stringContaining("  key.created  key 2 app  ")]);
});

test("audit --follow ends with Ctrl-C at once and says nothing of it", async () => {
  const { dataDir } = cli;
  const main = join(import.meta.dir, "../../src/cli/main.ts");
  const args = [process.execPath, main, "audit", "--follow", "--json", "--data", dataDir];
  await using child = Bun.spawn(args, { stdout: "pipe", stderr: "pipe" });
  const reader = child.stdout.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('"key.created"');
  child.kill("SIGINT");
  await child.exited;
  expect(child.signalCode ?? child.exitCode).toBe("SIGINT");
  expect(await child.stderr.text()).toBe("");
});

test("audit --follow --until is rejected", async () => {
  expect(await cli.run("audit --follow --until 1h")).toEqual(
    wrongUsage("--follow and --until exclude each other; use one of them"),
  );
});

test.each([
  ["key.roled", "key.rotated"],
  ["key.create", "key.created"],
])("an action that is misspelt, %s: the message names %s", async (typed, meant) => {
  const { code, err } = await cli.run(["audit", "--action", typed]);
  expect([code, err.slice(-40 - meant.length)]).toEqual([
    2,
    expect.stringContaining(`(did you mean ${meant}?)`),
  ]);
});
