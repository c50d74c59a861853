import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generateSecret } from "../../src/domain/api-keys.ts";
import { cleanUpAfterAll, EXECUTABLE, failure, InProcessCli, temporaryDirectory } from "./cli.ts";
import { createKey } from "./keys.ts";
import { spawnOnTerminal } from "./terminal.ts";

cleanUpAfterAll();

test("keys find shows the key of a secret, also if it is pasted with the header", async () => {
  const cli = new InProcessCli();
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
  const cli = new InProcessCli();
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

test("a secret of no key is a failure, and creates no database", async () => {
  const cli = new InProcessCli();
  const find = async (secret: string) => {
    cli.secret = secret;
    return cli.run("keys find");
  };
  const unknown = generateSecret("production");
  expect((await find(unknown)).code).toBe(1);
  expect(existsSync(cli.dataDir)).toBeFalse();
  await createKey(cli);
  for (const [secret, err] of [
    ["", "no API key was given"],
    ["hunter2", "this is not an API key; it is mistyped or incomplete"],
    [generateSecret("staging"), "this is an API key of staging"],
    [unknown, "no key in production has this secret"],
  ] as const) {
    expect(await find(secret)).toEqual(failure(err));
  }
});

test("a database out of reach is a failure, not the answer that there is no such key", async () => {
  const notDirectory = join(temporaryDirectory(), "file");
  writeFileSync(notDirectory, "");
  const data = join(notDirectory, "data");
  const cli = new InProcessCli();
  cli.secret = generateSecret("production");
  for (const command of [
    ["keys", "find"],
    ["keys", "list"],
    ["export", "keys"],
    ["backup", temporaryDirectory()],
  ]) {
    await expect(cli.run([...command, "--data", data])).rejects.toMatchObject({ code: "ENOTDIR" });
  }
});

test("keys find reads the secret from standard input, in a process of its own", async () => {
  const cli = new InProcessCli();
  const { key } = await createKey(cli);
  const child = Bun.spawn([EXECUTABLE, "keys", "find", "--json", "--data", cli.dataDir], {
    stdin: Buffer.from(`${key}\nmore\n`),
    stdout: "pipe",
  });
  expect(await child.stdout.json()).toMatchObject({ id: 1 });
  expect(await child.exited).toBe(0);
});

test("on a terminal keys find asks, and does not show what is typed; Ctrl-C ends it with status 130", async () => {
  const cli = new InProcessCli();
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
