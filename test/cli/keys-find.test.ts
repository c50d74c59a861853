import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generateSecret } from "../../src/domain/api-keys.ts";
import { cleanUp, EXECUTABLE, InProcessCli, petstore, temporaryDirectory } from "./cli.ts";
import { createKey, FREE_KEY } from "./keys.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

describe("keys find", () => {
  test("shows the key of a secret, also if it is pasted with the header", async () => {
    const cli = new InProcessCli();
    await createKey(cli);
    const { key } = await createKey(cli);
    for (const typed of [key, ` ${key}\t`, `Bearer ${key}`, `Authorization: Bearer ${key}`]) {
      cli.secret = typed;
      expect(await cli.json("keys", "find")).toMatchObject({ id: 2, secretValidUntil: null });
    }
    const { out } = await cli.run(["keys", "find"]);
    expect(out).toStartWith("Key           2\n");
    expect(out).toContain("\nGiven secret  the current one\n");
    expect(out).not.toContain(key.slice(0, 14));
  });

  test("tells whether the secret still works", async () => {
    const cli = new InProcessCli();
    const { key } = await createKey(cli);
    cli.secret = key;
    const given = async () => /Given secret +(.*)/.exec((await cli.run(["keys", "find"])).out)?.[1];
    await cli.run(["keys", "roll", "1", "--overlap", "1h"]);
    expect(await given()).toBe("replaced, valid until 2026-11-15T13:00:00.000Z");
    cli.clock.advance(3_600_000);
    expect(await given()).toBe("replaced, no longer valid since 2026-11-15T13:00:00.000Z");
    await cli.run(["keys", "roll", "1", "--overlap", "0"]);
    expect(await given()).toBe("replaced, and no longer valid");
  });

  test.each([
    ["", "no API key was given"],
    ["hunter2", "this is not an API key; it is mistyped or incomplete"],
    [generateSecret("staging"), "this is an API key of staging"],
    [generateSecret("production"), "no key in production has this secret"],
  ])("%p: %s", async (secret, err) => {
    const cli = new InProcessCli();
    await createKey(cli);
    cli.secret = secret;
    expect(await cli.run(["keys", "find"])).toEqual({ code: 1, out: "", err });
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

  test("creates no database", async () => {
    const cli = new InProcessCli();
    cli.secret = generateSecret("production");
    expect((await cli.run(["keys", "find"])).code).toBe(1);
    expect(existsSync(cli.dataDir)).toBeFalse();
  });

  async function createdIn(data: string): Promise<string> {
    const { out } = await petstore("keys", "create", ...FREE_KEY, "--json", "--data", data);
    return JSON.parse(out).key;
  }

  test("reads the secret from standard input, in a process of its own", async () => {
    const data = join(temporaryDirectory(), "data");
    const key = await createdIn(data);
    const child = Bun.spawn([EXECUTABLE, "keys", "find", "--json", "--data", data], {
      stdin: Buffer.from(`${key}\nmore\n`),
      stdout: "pipe",
    });
    expect(await child.stdout.json()).toMatchObject({ id: 1 });
    expect(await child.exited).toBe(0);
  });

  test("on a terminal it asks, and does not show what is typed; Ctrl-C ends it with status 130", async () => {
    const data = join(temporaryDirectory(), "data");
    const key = await createdIn(data);
    const runOnTerminal = async (typed: string) => {
      let output = "";
      const { promise: isAsked, resolve } = Promise.withResolvers<void>();
      const child = Bun.spawn([EXECUTABLE, "keys", "find", "--data", data], {
        terminal: {
          cols: 200,
          data(_terminal, bytes) {
            output += new TextDecoder().decode(bytes);
            if (output.includes("API key: ")) resolve();
          },
        },
      });
      await isAsked;
      child.terminal?.write(typed);
      return { code: await child.exited, output: output.replaceAll("\r\n", "\n") };
    };
    const found = await runOnTerminal(`x\u007f${key}\r`);
    expect(found.code).toBe(0);
    expect(found.output).toStartWith("API key: \nKey           1\n");
    expect(found.output).not.toContain(key);
    expect((await runOnTerminal("pet_live\u0003")).code).toBe(130);
  });
});
