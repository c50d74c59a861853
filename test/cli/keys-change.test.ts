import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { cleanUp, InProcessCli } from "./cli.ts";
import { createKey, DETAILS, findCredential, FREE_KEY, paths, sendRequests, showKey } from "./keys.ts";

afterAll(cleanUp);

test("keys roll works as keys rotate, and says so", async () => {
  const cli = new InProcessCli();
  await createKey(cli);
  const { code, out } = await cli.run("keys roll 1");
  expect(code).toBe(0);
  expect(out).toContain("keys roll is now keys rotate; keys roll works until release 1.2");
  expect(out).toContain('Key 1 "app" has a new secret.');
});

test("keys disable switches a key off, and keys enable on again", async () => {
  const cli = new InProcessCli();
  await createKey(cli);
  expect((await cli.run("keys disable 1")).out).toBe(
    "Key 1 is disabled. petstore keys enable 1 switches it on again.\n",
  );
  expect(await showKey(cli, 1)).toMatchObject({ state: "disabled" });
  expect((await cli.run("keys enable 1")).out).toBe("Key 1 is enabled.\n");
  expect(await showKey(cli, 1)).toMatchObject({ state: "active" });
  const actions = (await cli.json<{ action: string }[]>("audit --key 1")).map(({ action }) => action);
  expect(actions).toEqual(["key.enabled", "key.disabled", "key.created"]);
});

describe("keys rotate", () => {
  test("prints a new secret; the previous one stays valid for a day, or for --overlap", async () => {
    const cli = new InProcessCli();
    const { key: previous } = await createKey(cli);
    const rotated = await cli.json("keys rotate 1");
    expect(rotated).toMatchObject({
      id: 1,
      name: "app",
      plan: "free",
      previousSecretsValidUntil: "2026-11-16T12:00:00.000Z",
    });
    expect((await findCredential(cli, previous))?.validUntil).toBe(Date.parse("2026-11-16T12:00:00Z"));
    const current = await findCredential(cli, String(rotated["key"]));
    expect([current?.key.id, current?.validUntil]).toEqual([1, undefined]);

    const { out } = await cli.run("keys rotate 1 --overlap 0");
    expect(out).toStartWith(
      'Key 1 "app" has a new secret. Its previous secrets are no longer valid.\n\n  pet_live_',
    );
    expect(out).toContain("This is the only time it is shown");
    expect((await findCredential(cli, previous))?.validUntil).toBe(0);
  });

  test("keys show has both secrets until the overlap ends", async () => {
    const cli = new InProcessCli();
    const { key: first } = await createKey(cli);
    cli.clock.advance(1_000);
    const rolled = (await cli.run("keys rotate 1 --overlap 1h")).out;
    expect(rolled).toStartWith(
      'Key 1 "app" has a new secret. Its previous secrets stay valid until 2026-11-15T13:00:01.000Z.\n',
    );
    const [second = ""] = /pet_live_\w+/.exec(rolled) ?? [];
    const hint = (secret: string) => `${secret.slice(0, 13)}…${secret.slice(-4)}`;
    expect((await showKey(cli, 1)).secrets).toEqual([
      { hint: hint(second), createdAt: "2026-11-15T12:00:01.000Z", validUntil: null },
      { hint: hint(first), createdAt: "2026-11-15T12:00:00.000Z", validUntil: "2026-11-15T13:00:01.000Z" },
    ]);
    expect((await cli.run("keys show 1")).out).toContain(
      `\nSecret       ${hint(second)}, created at 2026-11-15T12:00:01.000Z
             ${hint(first)}, created at 2026-11-15T12:00:00.000Z, valid until 2026-11-15T13:00:01.000Z\n`,
    );
    cli.clock.advance(3_600_000);
    expect((await showKey(cli, 1)).secrets).toHaveLength(1);
  });
});

test("keys revoke: a second time changes nothing", async () => {
  const cli = new InProcessCli();
  await createKey(cli);
  expect((await cli.run("keys revoke 1")).out).toBe("Key 1 is revoked.\n");
  cli.clock.advance(5_000);
  expect(await cli.run("keys revoke 1")).toEqual({
    code: 0,
    out: "Key 1 was already revoked at 2026-11-15T12:00:00.000Z.\n",
    err: "",
  });
  expect((await showKey(cli, 1)).revokedAt).toBe("2026-11-15T12:00:00.000Z");
});

test("keys set-plan moves a key to Enterprise and away from it", async () => {
  const cli = new InProcessCli();
  await createKey(cli);
  const enterprise = ["enterprise", "--per-minute", "5", "--per-day", "6"];
  expect((await cli.run(["keys", "set-plan", "1", ...enterprise])).out).toBe(
    "Key 1 is now on the enterprise plan: 5 requests per minute, 6 per day.\n",
  );
  expect(await showKey(cli, 1)).toMatchObject({ plan: "enterprise", limits: { perMinute: 5, perDay: 6 } });
  await cli.run("keys set-plan 1 pro");
  expect(await showKey(cli, 1)).toMatchObject({ plan: "pro", limits: { perMinute: 300, perDay: 10_000 } });
});

describe("keys update", () => {
  test("changes what is given and nothing else, and --clear removes fields", async () => {
    const cli = new InProcessCli();
    await createKey(cli, ...FREE_KEY, ...DETAILS);
    const changes = ["--name", "shop", "--label", "x", "--expires", "1h", "--access", "read"];
    expect((await cli.run(["keys", "update", "1", ...changes])).out).toBe('Key 1 "shop" is updated.\n');
    expect(await showKey(cli, 1)).toMatchObject({
      name: "shop",
      owner: "ann@example.com",
      notes: "one\ntwo",
      labels: ["x"],
      access: "read",
      expiresAt: "2026-11-15T13:00:00.000Z",
    });
    const removals = ["--expires", "never", "--clear", "owner,notes", "--clear", "labels"];
    const cleared = { owner: null, notes: null, labels: [], expiresAt: null };
    expect(await cli.json("keys", "update", "1", ...removals)).toMatchObject({
      id: 1,
      name: "shop",
      access: "read",
      ...cleared,
    });
    expect(await showKey(cli, 1)).toMatchObject(cleared);
  });

  test.each([
    [
      "",
      "keys update needs --name, --owner, --notes, --label, --plan, --per-minute, --per-day, --access, --expires or --clear",
    ],
    ["--owner x --clear owner", "--owner and --clear owner exclude each other; use one of them"],
    ["--label x --clear labels", "--label and --clear labels exclude each other; use one of them"],
    ["--clear plan", '--clear is "plan"; it must be owner, notes or labels, or several separated by commas'],
  ])("%p is wrong usage", async (flags, err) => {
    const argv = ["keys", "update", "1", ...flags.split(" ").filter((flag) => flag !== "")];
    expect(await new InProcessCli().run(argv)).toEqual({ code: 2, out: "", err });
  });

  test("--help: what is not given stays as it is, so nothing has a default; --clear lists its fields", async () => {
    const { out } = await new InProcessCli().run("keys update --help");
    expect(out).not.toMatch(/default:\s+(?:write|never)/);
    expect(out).toContain("--clear FIELD…   Fields to remove from the key (owner, notes or labels)\n");
  });
});

describe("keys unban", () => {
  test("ends the current ban, and not a later one, or resets strikes", async () => {
    const cli = new InProcessCli();
    const { id } = await createKey(cli);
    sendRequests(cli, id, { strikesToBan: 2 });
    expect(await showKey(cli, id)).toMatchObject({ state: "banned" });
    cli.clock.advance(1);
    expect((await cli.run("keys unban 1")).out).toBe("Key 1 is not banned and has no strikes.\n");
    expect(await showKey(cli, id)).toMatchObject({ state: "active", usage: { minute: { used: 1 } } });

    sendRequests(cli, id, { strikesToBan: 2 });
    expect(await showKey(cli, id)).toMatchObject({ state: "banned" });

    sendRequests(cli, id, { strikesToBan: 3 });
    expect(await showKey(cli, id)).toMatchObject({ state: "active", strikes: 2 });
    expect(await cli.json("keys unban 1")).toMatchObject({ id: 1, state: "active", strikes: 0 });
    expect(await showKey(cli, id)).toMatchObject({ state: "active", strikes: 0 });
  });

  test("without a ban and strikes, nothing is recorded", async () => {
    const cli = new InProcessCli();
    const { id } = await createKey(cli);
    const unbans = () => cli.json<unknown[]>("audit", "--action", "key.unbanned");
    expect((await cli.run("keys unban 1")).out).toBe("Key 1 is not banned and has no strikes.\n");
    expect(await unbans()).toEqual([]);
    sendRequests(cli, id, { strikesToBan: 2 });
    for (const _ of "12") await cli.run("keys unban 1");
    expect(await unbans()).toHaveLength(1);
  });

  test("fails on a damaged usage store", async () => {
    const cli = new InProcessCli();
    await createKey(cli);
    const { usageStore } = paths(cli);
    writeFileSync(usageStore, "no database, ".repeat(100));
    expect(await cli.run("keys unban 1")).toMatchObject({
      code: 1,
      err: expect.stringContaining(`cannot open the database ${usageStore}`),
    });
  });
});

test("what the operation rejects is one line", async () => {
  const cli = new InProcessCli();
  await createKey(cli);
  await cli.run("keys revoke 1");
  expect((await cli.run("keys show 1")).out).toContain("Revoked      2026-11-15T12:00:00.000Z\n");
  expect(await cli.run("keys rotate 1")).toEqual({
    code: 1,
    out: "",
    err: "key 1 was revoked at 2026-11-15T12:00:00.000Z and cannot be rotated; create a new key",
  });
});

test("a key that does not exist is a failure, with and without a database", async () => {
  const cli = new InProcessCli();
  const lines = ["show 7", "revoke 7", "rotate 7", "set-plan 7 pro", "unban 7", "update 7 --name x"];
  const expectMissing = async () => {
    for (const line of lines) {
      expect(await cli.run(["keys", ...line.split(" ")])).toEqual({
        code: 1,
        out: "",
        err: `key 7 does not exist in production (data: ${cli.dataDir}); see petstore keys list`,
      });
    }
  };
  await expectMissing();
  expect(existsSync(cli.dataDir)).toBeFalse();
  await createKey(cli);
  await expectMissing();
});
