import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { decide, newUsage } from "../../src/domain/rate-limit.ts";
import { cleanUp, InProcessCli } from "./cli.ts";
import { createKey, findCredential, paths, saveUsage, showKey } from "./keys.ts";

afterAll(cleanUp);

describe("keys roll", () => {
  test("prints a new secret, and the previous one stays valid for a day", async () => {
    const cli = new InProcessCli();
    const { key: previous } = await createKey(cli);
    const rolled = await cli.json("keys", "roll", "1");
    expect(rolled).toEqual({
      id: 1,
      key: expect.any(String),
      name: "app",
      plan: "free",
      previousSecretsValidUntil: "2026-11-16T12:00:00.000Z",
    });
    expect(await findCredential(cli, previous)).toMatchObject({
      validUntil: Date.parse("2026-11-16T12:00:00Z"),
    });
    const current = await findCredential(cli, String(rolled["key"]));
    expect(current?.key.id).toBe(1);
    expect(current?.validUntil).toBeUndefined();
  });

  test("says until when the previous secrets are valid", async () => {
    const cli = new InProcessCli();
    await createKey(cli);
    const { out } = await cli.run(["keys", "roll", "1", "--overlap", "1h"]);
    expect(out).toStartWith(
      'Key 1 "app" has a new secret. Its previous secrets stay valid until 2026-11-15T13:00:00.000Z.\n',
    );
  });

  test("--overlap 0: the previous secret is invalid at once", async () => {
    const cli = new InProcessCli();
    const { key: previous } = await createKey(cli);
    const { out } = await cli.run(["keys", "roll", "1", "--overlap", "0"]);
    expect(out).toStartWith(
      'Key 1 "app" has a new secret. Its previous secrets are no longer valid.\n\n  pet_live_',
    );
    expect(out).toContain("This is the only time it is shown");
    expect((await findCredential(cli, previous))?.validUntil).toBe(0);
  });
});

describe("keys revoke", () => {
  test("revokes a key, and a second time changes nothing", async () => {
    const cli = new InProcessCli();
    await createKey(cli);
    expect((await cli.run(["keys", "revoke", "1"])).out).toBe("Key 1 is revoked.\n");
    cli.clock.advance(5_000);
    expect(await cli.run(["keys", "revoke", "1"])).toEqual({
      code: 0,
      out: "Key 1 was already revoked at 2026-11-15T12:00:00.000Z.\n",
      err: "",
    });
    expect((await showKey(cli, 1)).revokedAt).toBe("2026-11-15T12:00:00.000Z");
  });
});

describe("keys set-plan", () => {
  test("moves a key to Enterprise and away from it", async () => {
    const cli = new InProcessCli();
    await createKey(cli);
    const enterprise = ["enterprise", "--per-minute", "5", "--per-day", "6"];
    expect((await cli.run(["keys", "set-plan", "1", ...enterprise])).out).toBe(
      "Key 1 is now on the enterprise plan: 5 requests per minute, 6 per day.\n",
    );
    expect(await showKey(cli, 1)).toMatchObject({
      plan: "enterprise",
      limits: { perMinute: 5, perDay: 6 },
    });
    await cli.run(["keys", "set-plan", "1", "pro"]);
    expect(await showKey(cli, 1)).toMatchObject({ plan: "pro", limits: { perMinute: 300, perDay: 10_000 } });
  });
});

describe("keys unban", () => {
  /** Four requests with a limit of one: the first is allowed, the last two are strikes. */
  function addStrikes(cli: InProcessCli, id: number, { strikesToBan }: { strikesToBan: number }): void {
    const usage = newUsage();
    for (let i = 0; i < 4; i++) {
      cli.clock.advance(1);
      const rules = { strikes: strikesToBan, graceMs: 0, lengthMs: 300_000, maxLengthMs: 300_000 };
      decide(usage, { perMinute: 1, perDay: 1 }, cli.clock.now(), rules);
    }
    saveUsage(cli, id, usage);
  }

  test("ends the current ban, and not a later one", async () => {
    const cli = new InProcessCli();
    const { id } = await createKey(cli);
    addStrikes(cli, id, { strikesToBan: 2 });
    expect(await showKey(cli, id)).toMatchObject({ state: "banned" });
    cli.clock.advance(1);
    expect((await cli.run(["keys", "unban", "1"])).out).toBe("Key 1 is not banned and has no strikes.\n");
    expect(await showKey(cli, id)).toMatchObject({ state: "active", usage: { minute: { used: 1 } } });

    addStrikes(cli, id, { strikesToBan: 2 });
    expect(await showKey(cli, id)).toMatchObject({ state: "banned" });
  });

  test("resets the strikes of a key that is not banned", async () => {
    const cli = new InProcessCli();
    const { id } = await createKey(cli);
    addStrikes(cli, id, { strikesToBan: 3 });
    expect(await showKey(cli, id)).toMatchObject({ state: "active", strikes: 2 });
    await cli.run(["keys", "unban", "1"]);
    expect(await showKey(cli, id)).toMatchObject({ state: "active", strikes: 0 });
  });

  test("prints when the key was unbanned", async () => {
    const cli = new InProcessCli();
    await createKey(cli);
    expect(await cli.json("keys", "unban", "1")).toEqual({
      id: 1,
      unbannedAt: "2026-11-15T12:00:00.000Z",
    });
  });

  test("fails on a damaged usage store", async () => {
    const cli = new InProcessCli();
    await createKey(cli);
    const { usageStore } = paths(cli);
    writeFileSync(usageStore, "no database, ".repeat(100));
    await expect(cli.run(["keys", "unban", "1"])).rejects.toThrow(`cannot open the database ${usageStore}`);
  });
});

test.each([
  ["set-plan 1 pro", "moved to another plan"],
  ["unban 1", "unbanned"],
  ["roll 1", "rolled"],
])("keys %s: an expired or revoked key is not changed", async (line, change) => {
  const cli = new InProcessCli();
  await createKey(cli, "--name", "x", "--plan", "free", "--expires", "1h");
  const run = () => cli.run(["keys", ...line.split(" ")]);
  cli.clock.advance(3_600_000);
  expect(await run()).toEqual({
    code: 1,
    out: "",
    err: `key 1 expired at 2026-11-15T13:00:00.000Z and cannot be ${change}; create a new key`,
  });
  await cli.run(["keys", "revoke", "1"]);
  expect(await run()).toEqual({
    code: 1,
    out: "",
    err: `key 1 was revoked at 2026-11-15T13:00:00.000Z and cannot be ${change}; create a new key`,
  });
  expect(await showKey(cli, 1)).toMatchObject({ plan: "free", state: "revoked" });
});

test.each(["show 7", "revoke 7", "roll 7", "set-plan 7 pro", "unban 7"])(
  "keys %s: the key does not exist",
  async (line) => {
    const cli = new InProcessCli();
    const missing = {
      code: 1,
      out: "",
      err: `key 7 does not exist in production (data: ${cli.dataDir}); see petstore keys list`,
    };
    expect(await cli.run(["keys", ...line.split(" ")])).toEqual(missing);
    expect(existsSync(cli.dataDir)).toBeFalse();
    await createKey(cli);
    expect(await cli.run(["keys", ...line.split(" ")])).toEqual(missing);
  },
);
