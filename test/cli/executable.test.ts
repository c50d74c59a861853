import { afterAll, describe, expect, test, setDefaultTimeout } from "bun:test";
import { copyFileSync, existsSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  cleanUp,
  EXECUTABLE,
  petstore,
  spawnNpm,
  spawnNpx,
  spawnPetstore,
  temporaryDirectory,
} from "./cli.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

describe("the executable", () => {
  test("runs from any directory, also through symbolic links, without Bun on the path", async () => {
    const directory = temporaryDirectory();
    symlinkSync(EXECUTABLE, join(directory, "first"));
    symlinkSync("first", join(directory, "second"));
    const child = Bun.spawn(["./second", "--version"], { cwd: directory, env: { PATH: "/usr/bin:/bin" } });
    expect(await child.stdout.text()).toMatch(
      /^petstore \d+\.\d+\.\d+ \(from source, Bun \d+\.\d+\.\d+\)\n$/,
    );
    expect(await child.exited).toBe(0);
  });

  test("npx petstore runs in the project's directory", async () => {
    const child = spawnNpx("petstore", "--version");
    expect(await child.stdout.text()).toMatch(
      /^petstore \d+\.\d+\.\d+ \(from source, Bun \d+\.\d+\.\d+\)\n$/,
    );
    expect(await child.exited).toBe(0);
  }, 20_000);

  test("before npm ci, it says what is missing", async () => {
    const directory = temporaryDirectory();
    copyFileSync(EXECUTABLE, join(directory, "petstore"));
    const child = Bun.spawn([join(directory, "petstore"), "serve"], { stderr: "pipe" });
    expect(await child.stderr.text()).toBe(`petstore: Bun is not installed; run npm ci in ${directory}\n`);
    expect(await child.exited).toBe(1);
  });

  test("npm run -s petstore -- ARGS is the same command", async () => {
    const child = spawnNpm("run", "-s", "petstore", "--", "keys", "show", "x");
    expect(await child.stderr.text()).toContain('petstore: ID is "x"; it must be the ID of a key');
    expect(await child.exited).toBe(2);
  });

  test.each(["serve --port many", "keys show", "frobnicate", "keys create --plan free --name a\u0007\nb"])(
    "wrong usage (%p) is one line on standard error and exit status 2",
    async (line) => {
      const { code, out, err } = await petstore(...line.split(" "));
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toMatch(/^petstore: [^\n]+\n$/);
    },
  );

  test("a failure is one line on standard error and exit status 1", async () => {
    const file = join(temporaryDirectory(), "file");
    writeFileSync(file, "");
    const { code, out, err } = await petstore(
      "keys",
      "create",
      "--name",
      "x",
      "--plan",
      "free",
      "--data",
      file,
    );
    expect({ code, out, err }).toEqual({
      code: 1,
      out: "",
      err: `petstore: ${file}: a part of the path is a file, not a directory\n`,
    });
  });

  test("a file that is no database is a failure with its path", async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "production.db"), "plain text, ".repeat(1_000));
    const { code, err } = await petstore("keys", "list", "--data", directory);
    expect(code).toBe(1);
    expect(err).toMatch(/^petstore: [^\n]*production\.db[^\n]*\n$/);
  });

  test("the default data directory is ./data in the working directory", async () => {
    const cwd = temporaryDirectory();
    const child = spawnPetstore(["keys", "create", "--name", "x", "--plan", "free", "--json"], { cwd });
    expect(await child.stdout.json()).toMatchObject({ id: 1, name: "x" });
    expect(await child.exited).toBe(0);
    expect(existsSync(join(cwd, "data", "production.db"))).toBeTrue();
  });

  test("concurrent commands on a new data directory all succeed", async () => {
    const data = join(temporaryDirectory(), "data");
    const create = () =>
      petstore("keys", "create", "--name", "x", "--plan", "free", "--json", "--data", data);
    const results = await Promise.all([create(), create(), create(), create()]);
    for (const { code, err } of results) expect({ code, err }).toEqual({ code: 0, err: "" });
    const ids = results.map(({ out }) => Number(JSON.parse(out).id));
    expect(ids.toSorted()).toEqual([1, 2, 3, 4]);
  });

  test("a long output is complete on a pipe", async () => {
    const { code, out } = await petstore("openapi");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toHaveProperty("paths");
  });

  test.each([
    ["a reader that stops early is not a failure", "| head -c 1 >/dev/null; exit ${PIPESTATUS[0]}", 0, ""],
    [
      "output that cannot be written is a failure",
      "> /dev/full",
      1,
      "petstore: no space is left on the device\n",
    ],
  ])("%s", async (_name, redirection, code, error) => {
    const line = `"$0" openapi ${redirection}`;
    const child = Bun.spawn(["bash", "-c", line, EXECUTABLE], { stderr: "pipe" });
    expect(await child.stderr.text()).toBe(error);
    expect(await child.exited).toBe(code);
  });
});
