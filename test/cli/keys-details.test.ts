import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { KeyView } from "../../src/domain/key-view.ts";
import { decide, newUsage } from "../../src/domain/rate-limit.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite-store.ts";
import { cleanUp, InProcessCli } from "./cli.ts";
import { createKey, FREE_KEY, paths, saveUsage, showKey } from "./keys.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

const DETAILS = ["--owner", "ann@example.com", "--notes", "one\ntwo", "--label", "a,b", "--label", "c"];

describe("keys create", () => {
  test("owner, notes, labels and access", async () => {
    const cli = new InProcessCli();
    const created = await createKey(cli, ...FREE_KEY, ...DETAILS, "--access", "read");
    const details = { owner: "ann@example.com", notes: "one\ntwo", labels: ["a", "b", "c"], access: "read" };
    expect<object>(created).toMatchObject(details);
    expect(await showKey(cli, 1)).toMatchObject(details);
    const { out } = await cli.run(["keys", "show", "1"]);
    expect(out).toContain(
      "Owner        ann@example.com\nNotes        one\n             two\nLabels       a, b, c\n",
    );
    expect(out).toContain("Access       read\n");
  });

  test("the summary says that a key is read-only", async () => {
    const { out } = await new InProcessCli().run(["keys", "create", ...FREE_KEY, "--access", "read"]);
    expect(out).toContain("free plan, 60 requests per minute, 1,000 per day; read-only\n");
  });

  test("--expires never is the default", async () => {
    expect(await createKey(new InProcessCli(), ...FREE_KEY, "--expires", "never")).toMatchObject({
      expiresAt: null,
    });
  });

  test.each([
    ["--access admin", '--access is "admin"; it must be read or write'],
    [
      `--label ${Array.from({ length: 21 }, (_, n) => n).join(",")}`,
      "labels must be at most 20 different labels, each 1 to 50 characters on one line, not all of them blank, without commas",
    ],
    [
      `--owner ${"x".repeat(201)}`,
      `--owner is "${"x".repeat(60)}…"; it must be 1 to 200 characters on one line, not all of them blank`,
    ],
  ])("%s is wrong usage", async (flags, err) => {
    expect(await new InProcessCli().run(["keys", "create", ...FREE_KEY, ...flags.split(" ")])).toEqual({
      code: 2,
      out: "",
      err,
    });
  });
});

describe("keys update", () => {
  test("renames a key and changes what is given, and nothing else", async () => {
    const cli = new InProcessCli();
    await createKey(cli, ...FREE_KEY, ...DETAILS);
    const { out } = await cli.run([
      "keys",
      "update",
      "1",
      "--name",
      "shop",
      "--label",
      "x",
      "--expires",
      "1h",
    ]);
    expect(out).toBe('Key 1 "shop" is updated.\n');
    expect(await showKey(cli, 1)).toMatchObject({
      name: "shop",
      owner: "ann@example.com",
      notes: "one\ntwo",
      labels: ["x"],
      expiresAt: "2026-11-15T13:00:00.000Z",
    });
  });

  test("removes the expiry, the owner, the notes and the labels", async () => {
    const cli = new InProcessCli();
    await createKey(cli, ...FREE_KEY, ...DETAILS, "--expires", "1h");
    const updated = await cli.json(
      "keys",
      "update",
      "1",
      "--expires",
      "never",
      "--clear",
      "owner,notes",
      "--clear",
      "labels",
    );
    const cleared = { owner: null, notes: null, labels: [], expiresAt: null };
    expect(updated).toEqual({ id: 1, name: "app", access: "write", ...cleared });
    expect(await showKey(cli, 1)).toMatchObject(cleared);
  });

  test("a new expiry makes an expired key work again", async () => {
    const cli = new InProcessCli();
    await createKey(cli, ...FREE_KEY, "--expires", "1h");
    cli.clock.advance(3_600_000);
    expect((await showKey(cli, 1)).state).toBe("expired");
    await cli.run(["keys", "update", "1", "--expires", "1h"]);
    expect(await showKey(cli, 1)).toMatchObject({ state: "active", expiresAt: "2026-11-15T14:00:00.000Z" });
  });

  test("a revoked key keeps its access, and can be renamed", async () => {
    const cli = new InProcessCli();
    await createKey(cli);
    await cli.run(["keys", "revoke", "1"]);
    expect(await cli.run(["keys", "update", "1", "--access", "read"])).toEqual({
      code: 1,
      out: "",
      err: "key 1 was revoked at 2026-11-15T12:00:00.000Z and cannot be changed; create a new key",
    });
    expect((await cli.run(["keys", "update", "1", "--name", "old"])).code).toBe(0);
  });

  test.each([
    [
      "update 1",
      2,
      "keys update needs a change: --name, --owner, --notes, --label, --access, --expires or --clear",
    ],
    ["update 1 --owner x --clear owner", 2, "--owner and --clear owner exclude each other; use one of them"],
    [
      "update 1 --label x --clear labels",
      2,
      "--label and --clear labels exclude each other; use one of them",
    ],
    [
      "update 1 --clear plan",
      2,
      '--clear is "plan"; it must be owner, notes or labels, or several separated by commas',
    ],
  ])("keys %s", async (line, code, err) => {
    const cli = new InProcessCli();
    await createKey(cli);
    expect(await cli.run(["keys", ...line.split(" ")])).toEqual({ code, out: "", err });
  });
});

test("keys show: after a roll, both secrets until the overlap ends", async () => {
  const cli = new InProcessCli();
  const { key: first } = await createKey(cli);
  cli.clock.advance(1_000);
  const { key: second } = await cli.json<{ key: string }>("keys", "roll", "1", "--overlap", "1h");
  const hint = (secret: string) => `${secret.slice(0, 13)}…${secret.slice(-4)}`;
  expect((await showKey(cli, 1)).secrets).toEqual([
    { hint: hint(second), createdAt: "2026-11-15T12:00:01.000Z", validUntil: null },
    { hint: hint(first), createdAt: "2026-11-15T12:00:00.000Z", validUntil: "2026-11-15T13:00:01.000Z" },
  ]);
  expect((await cli.run(["keys", "show", "1"])).out).toContain(
    `\nSecret       ${hint(second)}, created at 2026-11-15T12:00:01.000Z
             ${hint(first)}, created at 2026-11-15T12:00:00.000Z, valid until 2026-11-15T13:00:01.000Z\n`,
  );
  cli.clock.advance(3_600_000);
  expect((await showKey(cli, 1)).secrets).toHaveLength(1);
});

describe("keys list", () => {
  const idsWith = async (cli: InProcessCli, ...flags: string[]) =>
    (await cli.json<KeyView[]>("keys", "list", ...flags)).map(({ id }) => id);

  async function threeKeys(): Promise<InProcessCli> {
    const cli = new InProcessCli();
    await createKey(cli, "--name", "shop", "--plan", "free", "--owner", "ann", "--label", "eu,web");
    cli.clock.advance(86_400_000);
    await createKey(
      cli,
      "--name",
      "reports",
      "--plan",
      "pro",
      "--owner",
      "bob",
      "--label",
      "eu",
      "--access",
      "read",
    );
    await createKey(cli, "--name", "old", "--plan", "pro");
    await cli.run(["keys", "revoke", "3"]);
    return cli;
  }

  test.each([
    ["--plan pro", [2, 3]],
    ["--state revoked", [3]],
    ["--state active --plan pro", [2]],
    ["--owner ANN", [1]],
    ["--label eu", [1, 2]],
    ["--label eu --label web", [1]],
    ["--access read", [2]],
    ["--search REP", [2]],
    ["--search 3", [3]],
    ["--unused-since 1h", [1]],
    ["--unused-since 2026-11-16", [1]],
    ["--unused-since 2026-11-15T12:00:00Z", []],
    ["--banned", []],
  ] as const)("%s", async (flags, expected) => {
    expect(await idsWith(await threeKeys(), ...flags.split(" "))).toEqual([...expected]);
  });

  test("the last use comes from the usage history", async () => {
    const cli = await threeKeys();
    const lastUsedAt = cli.clock.now();
    const { usageHistory, close } = openSqlite(paths(cli).store);
    const keys = [{ keyId: 1, admitted: 1, limited: 0, banned: 0, errors: 0, lastUsedAt, byOperation: [] }];
    await usageHistory.addUsage({ writer: "test", sequence: 1, hour: lastUsedAt, keys });
    await close();
    expect((await cli.json<KeyView[]>("keys", "list")).map((key) => key.lastUsedAt)).toEqual([
      "2026-11-16T12:00:00.000Z",
      null,
      null,
    ]);
    expect((await cli.run(["keys", "show", "1"])).out).toContain("\nLast used    2026-11-16T12:00:00.000Z\n");
    expect(await idsWith(cli, "--unused-since", "1h")).toEqual([]);
    cli.clock.advance(3_600_001);
    expect(await idsWith(cli, "--unused-since", "1h")).toEqual([1, 2, 3]);
  });

  test("--banned: the keys that are banned now", async () => {
    const cli = await threeKeys();
    const usage = newUsage();
    const rules = { strikes: 2, graceMs: 0, lengthMs: 300_000, maxLengthMs: 300_000 };
    for (let i = 0; i < 4; i++) {
      cli.clock.advance(1);
      decide(usage, { perMinute: 1, perDay: 1 }, cli.clock.now(), rules);
    }
    saveUsage(cli, 2, usage);
    expect(await idsWith(cli, "--banned")).toEqual([2]);
    expect(await idsWith(cli, "--state", "banned")).toEqual([2]);
  });

  test("says that none matches", async () => {
    const cli = await threeKeys();
    expect((await cli.run(["keys", "list", "--search", "tablet"])).out).toBe(
      "None of the 3 keys in production matches.\n",
    );
    expect(await cli.run(["keys", "list", "--banned", "--state", "active"])).toMatchObject({
      code: 2,
      err: "--banned and --state active exclude each other; use one of them",
    });
  });
});

test("keys update --help: what is not given stays as it is, so nothing has a default; --clear lists its fields", async () => {
  const { out } = await new InProcessCli().run(["keys", "update", "--help"]);
  expect(out).not.toMatch(/default:\s+(?:write|never)/);
  expect(out).toContain("--clear FIELD…            Fields to remove from the key (owner, notes or labels)\n");
});
