import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { generateSecret, isWellFormedSecret } from "../../src/domain/secrets.ts";
import { storePolicy } from "../../trials/harness/policy.ts";
import {
  cleanUpAfterAll,
  EXECUTABLE,
  failure,
  InProcessCli,
  type InProcessServer,
  cliDirectory,
} from "./cli.ts";
import { createKey, findCredential, FREE_KEY, paths, sendRequests, showKey } from "./keys.ts";
import { spawnOnTerminal } from "./terminal.ts";

cleanUpAfterAll();

let cli: InProcessCli;
beforeEach(() => void (cli = new InProcessCli()));

test("keys create prints a key that works, and names the data", async () => {
  const created = await createKey(cli, "--name", "mobile app", "--plan", "pro", "--expires", "30d");
  expect<object>(created).toMatchObject({
    id: 1,
    name: "mobile app",
    owner: null,
    plan: "pro",
    access: "write",
    limits: { perMinute: 300, perDay: 10_000 },
    createdAt: "2026-11-15T12:00:00.000Z",
    expiresAt: "2026-12-15T12:00:00.000Z",
  });
  expect(isWellFormedSecret(created.key, "production")).toBeTrue();
  expect((await findCredential(cli, created.key))?.key).toMatchObject({ id: 1, name: "mobile app" });

  const { out } = await cli.run(["keys", "create", ...FREE_KEY]);
  const [secret = ""] = /pet_live_\w+/.exec(out) ?? [];
  expect(out)
    .toBe(`Created key 2 "app" in production (data: ${cli.dataDir}): free plan, 60 requests per minute, 1,000 per day

  ${secret}

This is the only time it is shown: Petstore stores only its hash. Try it in a browser or with curl:

  http://127.0.0.1:8080/docs#try-it
  curl -i http://127.0.0.1:8080/v1/pets -H "Authorization: Bearer ${secret}"
`);
});

test("keys create: the summary has the expiry, and the URL is that of the environment, unless it is unknown", async () => {
  const create = `keys create ${FREE_KEY.join(" ")}`;
  expect(await cli.out(`${create} --expires 1h --access read`)).toContain(
    "60 requests per minute, 1,000 per day; read-only; expires at 2026-11-15T13:00:00.000Z\n",
  );
  await cli.run("migrate --env staging");
  const staging = await cli.out(`${create} --env staging`);
  expect(staging).toStartWith('Created key 1 "app" in staging');
  expect(staging).toMatch(/^ {2}pet_test_\w+$/m);
  expect(staging).toContain("http://127.0.0.1:8081/v1/pets");
  const anyPort = await cli.out(`${create} --port 0`);
  expect(anyPort).toEndWith("stores only its hash. A server on --port 0 prints its URL when it starts.\n");
  expect(anyPort).not.toContain("curl");
});

test("keys update changes what is given and nothing else, and --clear removes fields", async () => {
  const details = { owner: "ann@example.com", notes: "one\ntwo" };
  const flags = "--owner ann@example.com --notes one\ntwo --label a,b --label c".split(" ");
  expect<object>(await createKey(cli, ...FREE_KEY, ...flags)).toMatchObject(details);
  expect(await cli.out("keys show 1")).toContain(
    "Owner        ann@example.com\nNotes        one\n             two\nLabels       a, b, c\n",
  );
  const changes = "--name shop --label x --expires 1h --access read";
  expect(await cli.out(`keys update 1 ${changes}`)).toBe(
    'Key 1 "shop" is updated: free plan, 60 requests per minute, 1,000 per day.\n',
  );
  const changed = { name: "shop", labels: ["x"], access: "read", expiresAt: "2026-11-15T13:00:00.000Z" };
  expect(await showKey(cli, 1)).toMatchObject({ ...details, ...changed });
  const cleared = { ...changed, owner: null, notes: null, labels: [], expiresAt: null };
  const removals = "--clear expires,owner,notes --clear label";
  expect(await cli.json(`keys update 1 ${removals}`)).toMatchObject(cleared);
  expect(await showKey(cli, 1)).toMatchObject(cleared);
  // What is not given stays as it is, so nothing has a default.
  const out = await cli.out("keys update --help");
  expect(out).not.toMatch(/default:\s+(?:write|never)/);
  expect(out).toContain(
    "--clear FIELD…   Values to remove; can be repeated (owner, notes, label or expires)\n",
  );
});

test("each change of a key prints what it has done", async () => {
  await createKey(cli);
  for (const [line, out] of [
    ["disable 1", "Key 1 is disabled. petstore keys enable 1 switches it on again.\n"],
    ["enable 1", "Key 1 is enabled.\n"],
    [
      "update 1 --plan enterprise --per-minute 5 --per-day 6",
      'Key 1 "app" is updated: enterprise plan, 5 requests per minute, 6 per day.\n',
    ],
    ["update 1 --plan pro", 'Key 1 "app" is updated: pro plan, 300 requests per minute, 10,000 per day.\n'],
    ["revoke 1 --reason leaked", "Key 1 is revoked.\n"],
  ]) {
    expect(await cli.run(`keys ${line}`)).toEqual({ code: 0, out: String(out), err: "" });
  }
  cli.clock.advance(5_000);
  expect(await cli.out("keys revoke 1")).toBe("Key 1 was already revoked at 2026-11-15T12:00:00.000Z.\n");
  expect(await cli.out("keys show 1")).toContain("Revoked      2026-11-15T12:00:00.000Z\n");
  expect(await cli.run("keys rotate 1")).toEqual(
    failure("Key 1 was revoked at 2026-11-15T12:00:00.000Z and cannot be rotated; create a new key."),
  );
  const [revocation] = (await cli.out("audit --key 1 --action key.revoked")).match(/revokedAt.*/g) ?? [];
  expect(revocation).toBe("revokedAt: none → 2026-11-15T12:00:00.000Z, reason: leaked");
  const actions = (await cli.json<{ action: string }[]>("audit --key 1")).map(({ action }) => action);
  const changes = ["disabled", "enabled", "updated", "updated", "revoked"].map((each) => `key.${each}`);
  expect(actions).toEqual(["key.created", ...changes].toReversed());
});

test("whoever changes an expired key reads the command that makes it valid again, and it does", async () => {
  const { id } = await createKey(cli, "--name", "a", "--plan", "free", "--expires", "1h");
  cli.clock.advance(3_600_000);
  for (const [line, done] of [
    ["rotate", "rotated"],
    ["disable", "disabled"],
    ["unban", "unbanned"],
    ["update --plan pro", "changed"],
  ]) {
    expect(await cli.run(`keys ${line} ${id}`)).toEqual(
      failure(
        `Key ${id} expired at 2026-11-15T13:00:00.000Z and cannot be ${done}; a new expiry makes it valid again: petstore keys update ${id} --expires 30d.`,
      ),
    );
  }
  expect((await cli.run(`keys update ${id} --expires 30d`)).code).toBe(0);
  expect(await cli.json("keys", "show", String(id))).toMatchObject({ state: "active" });
  expect((await cli.run(`keys rotate ${id}`)).code).toBe(0);
});

test("keys rotate prints a new secret; the previous one stays valid for a day, or for --overlap", async () => {
  const { key: first } = await createKey(cli);
  cli.clock.advance(1_000);
  const rotated = await cli.out("keys rotate 1 --overlap 1h");
  expect(rotated).toStartWith(
    'Key 1 "app" has a new secret. Its earlier secrets stay valid until 2026-11-15T13:00:01.000Z.\n\n  pet_live_',
  );
  expect(rotated).toContain("This is the only time it is shown");
  const [second = ""] = /pet_live_\w+/.exec(rotated) ?? [];
  const hint = (secret: string) => `${secret.slice(0, 13)}…${secret.slice(-4)}`;
  expect(await cli.out("keys show 1")).toContain(
    `\nSecret       ${hint(second)}, created at 2026-11-15T12:00:01.000Z
             ${hint(first)}, created at 2026-11-15T12:00:00.000Z, valid until 2026-11-15T13:00:01.000Z\n`,
  );
  cli.clock.advance(3_600_000);
  expect((await showKey(cli, 1)).secrets).toHaveLength(1);
  const third = await cli.json<{ key: string }>("keys rotate 1");
  expect(third).toMatchObject({ id: 1, previousSecretsValidUntil: "2026-11-16T13:00:01.000Z" });
  expect(await cli.out("keys rotate 1 --overlap 0")).toContain(
    'Key 1 "app" has a new secret. Its earlier secrets are no longer valid.\n',
  );
  expect((await findCredential(cli, third.key))?.validUntil).toBe(0);
});

test("keys unban ends the current ban, and not a later one, or resets strikes", async () => {
  await createKey(cli);
  const unbans = async () => (await cli.json<unknown[]>("audit --action key.unbanned")).length;
  const unban = async () => await cli.out("keys unban 1");
  expect([await unban(), await unbans()]).toEqual(["Key 1 was not banned and had no strikes.\n", 0]);
  sendRequests(cli, 1, { strikesToBan: 2 });
  expect(await showKey(cli, 1)).toMatchObject({ state: "banned" });
  cli.clock.advance(1);
  expect(await unban()).toStartWith("Key 1 is unbanned; its ban would have ended at 2026-11-15T12:05:00.0");
  expect([await unban(), await unbans()]).toEqual(["Key 1 was not banned and had no strikes.\n", 1]);
  expect(await showKey(cli, 1)).toMatchObject({ state: "active", usage: { minute: { used: 1 } } });

  sendRequests(cli, 1, { strikesToBan: 2 });
  expect(await showKey(cli, 1)).toMatchObject({ state: "banned" });

  sendRequests(cli, 1, { strikesToBan: 3 });
  expect(await showKey(cli, 1)).toMatchObject({ state: "active", strikes: 2 });
  expect(await unban()).toBe("Key 1 was not banned; its 2 strikes towards a ban were removed.\n");
  sendRequests(cli, 1, { requests: 3 });
  expect(await unban()).toBe("Key 1 was not banned; its 1 strike towards a ban was removed.\n");
  expect(await cli.json("keys unban 1")).toMatchObject({ id: 1, state: "active", strikes: 0 });
  expect(await showKey(cli, 1)).toMatchObject({ state: "active", strikes: 0 });

  const { quotas: quotaStore } = paths(cli);
  writeFileSync(quotaStore, "no database, ".repeat(100));
  expect(await cli.run("keys unban 1")).toMatchObject({
    code: 1,
    err: expect.stringContaining(`cannot open the database ${quotaStore}`),
  });
});

test("a key that does not exist is a failure", async () => {
  for (const line of ["show 7", "revoke 7", "rotate 7", "unban 7", "update 7 --name x"]) {
    expect(await cli.run(`keys ${line}`)).toEqual(
      failure(`Key 7 does not exist. See petstore keys list; this is production (data: ${cli.dataDir}).`),
    );
  }
});

test("keys find shows the key of a secret, also if it is pasted with the header", async () => {
  await createKey(cli);
  const { key } = await createKey(cli);
  for (const typed of [key, ` ${key}\t`, `Bearer ${key}`, `Authorization: Bearer ${key}`]) {
    cli.secret = typed;
    expect(await cli.json("keys find")).toMatchObject({ id: 2, secretValidUntil: null });
  }
  const { out } = await cli.run("keys find");
  expect(out).toStartWith("Key           2\n");
  expect(out).toContain("\nGiven secret  the current one\n");
  expect(out).not.toContain(key.slice(0, 14));
});

test("keys find tells whether the secret still works", async () => {
  const { key } = await createKey(cli);
  cli.secret = key;
  const given = async () => /Given secret +(.*)/.exec(await cli.out("keys find"))?.[1];
  await cli.run("keys rotate 1 --overlap 1h");
  expect(await given()).toBe("replaced, valid until 2026-11-15T13:00:00.000Z");
  cli.clock.advance(3_600_000);
  expect(await given()).toBe("replaced, stopped working at 2026-11-15T13:00:00.000Z");
  await cli.run("keys rotate 1 --overlap 0");
  expect(await given()).toBe("replaced, and no longer valid");
});

test("a secret of no key is a failure", async () => {
  const find = async (secret: string) => {
    cli.secret = secret;
    return cli.run("keys find");
  };
  const unknown = generateSecret("production");
  expect((await find(unknown)).code).toBe(1);
  await createKey(cli);
  for (const [secret, err] of [
    ["", "no API key was given"],
    ["hunter2", "This is not an API key; it is mistyped or incomplete."],
    [generateSecret("staging"), "This is an API key of staging."],
    [unknown, "No key in production has this secret."],
  ] as const) {
    expect(await find(secret)).toEqual(failure(expect.stringContaining(err)));
  }
});

test("a database out of reach is a failure, not the answer that there is no such key", async () => {
  const notDirectory = join(cliDirectory(), "file");
  writeFileSync(notDirectory, "");
  const data = join(notDirectory, "data");
  cli.secret = generateSecret("production");
  for (const command of ["keys find", "keys list", "export keys", `backup ${cliDirectory()}`]) {
    await expect(cli.run(`${command} --data ${data}`)).rejects.toMatchObject({ code: "ENOTDIR" });
  }
});

test("keys find reads the secret from standard input, in a process of its own", async () => {
  const { key } = await createKey(cli);
  const child = Bun.spawn([EXECUTABLE, "keys", "find", "--json", "--data", cli.dataDir], {
    stdin: Buffer.from(`${key}\nmore\n`),
    stdout: "pipe",
  });
  expect(await child.stdout.json()).toMatchObject({ id: 1 });
  expect(await child.exited).toBe(0);
});

test("on a terminal keys find asks, and does not show what is typed; Ctrl-C ends it with status 130", async () => {
  const { key } = await createKey(cli);
  const runOnTerminal = async (typed: string) => {
    const { child, until, output } = spawnOnTerminal(["keys", "find", "--data", cli.dataDir]);
    await until("API key: ");
    child.terminal?.write(typed);
    return { code: await child.exited, output: output() };
  };
  const found = await runOnTerminal(`x\u007f${key}\r`);
  expect(found.code).toBe(0);
  expect(found.output).toStartWith("API key: \nKey           1\n");
  expect(found.output).not.toContain(key);
  expect((await runOnTerminal("pet_live\u0003")).code).toBe(130);
});

describe("the settings of the server, which it keeps with its data", () => {
  const cli = new InProcessCli();
  let server: InProcessServer;
  beforeAll(async () => {
    const plans = { free: { perMinute: 7, perDay: 80 }, pro: { perMinute: 8, perDay: 90 } };
    await storePolicy(["--data", cli.dataDir], { plans });
    server = await cli.serve();
  });

  async function keys(argv: readonly string[], variables = {}): Promise<string> {
    const { code, out, err } = await cli.run(["keys", ...argv], variables);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return out;
  }

  test("keys create, list, show, update and rotate use them, while it runs and after it has stopped", async () => {
    const { url, stop } = server;
    for (const isRunning of [true, false]) {
      if (!isRunning) await stop();
      const created = await keys(["create", ...FREE_KEY]);
      expect(created).toContain("free plan, 7 requests per minute, 80 per day");
      expect(created).toContain(`curl -i ${url}/pets -H`);
      expect(await keys(["rotate", "1"])).toContain(`curl -i ${url}/pets -H`);
      expect(await keys(["list"])).toMatch(/^1 +first key +- +free +write +active +\d+\/7 +\d+\/80 /m);
      expect(await keys(["show", "1"])).toContain("free: 7 requests per minute, 80 per day");
      expect(await keys(["update", "1", "--plan", "pro"])).toContain(
        "pro plan, 8 requests per minute, 90 per day",
      );
      await keys(["update", "1", "--plan", "free"]);
    }
  });

  test("flags and variables override the URL, but PETSTORE_PORT=0 does not hide the port of the server", async () => {
    const create = (argv: readonly string[], variables = {}) =>
      keys(["create", ...FREE_KEY, ...argv], variables);
    expect(await create(["--public-url", "https://api.example.com"])).toContain(
      "curl -i https://api.example.com/v1/pets -H",
    );
    expect(await create(["--port", "9000"])).toContain("curl -i http://127.0.0.1:9000/v1/pets -H");
    const variables = { PETSTORE_PUBLIC_URL: "https://pets.example" };
    const out = await create([], variables);
    expect(out).toContain("7 requests per minute, 80 per day");
    expect(out).toContain("curl -i https://pets.example/v1/pets -H");
    expect(await create([], { PETSTORE_PORT: "0" })).toContain(`curl -i ${server.url}/pets -H`);
  });

  test("the next start replaces the URL, and keeps the limits", async () => {
    const second = await cli.serve(["--public-url", "https://api.example.com"]);
    await second.stop();
    const created = await keys(["create", ...FREE_KEY]);
    expect(created).toContain("free plan, 7 requests per minute, 80 per day");
    expect(created).toContain("curl -i https://api.example.com/v1/pets -H");
  });
});
