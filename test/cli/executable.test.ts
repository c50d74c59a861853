import { describe, expect, test } from "bun:test";
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Child } from "../../trials/harness/child.ts";
import { userName } from "../../src/cli/terminal.ts";
import type { Variables } from "../../src/config/parse-options.ts";
import {
  cleanUpAfterAll,
  EXECUTABLE,
  failure,
  InProcessCli,
  makeDatabase,
  petstore,
  resultOf,
  ROOT,
  spawnPetstore,
  spawnTracked,
  cliDirectory,
} from "./cli.ts";
import { spawnOnTerminal } from "./terminal.ts";

cleanUpAfterAll();

const VERSION = /^petstore \d+\.\d+\.\d+ \(from source, Bun \d+\.\d+\.\d+\)\n$/;

test("the launcher runs from any directory, also through symbolic links, without Bun on the path", async () => {
  const directory = cliDirectory();
  symlinkSync(EXECUTABLE, join(directory, "first"));
  symlinkSync("first", join(directory, "second"));
  const child = Bun.spawn(["./second", "--version"], { cwd: directory, env: { PATH: "/usr/bin:/bin" } });
  expect(await child.stdout.text()).toMatch(VERSION);
  expect(await child.exited).toBe(0);
});

test("before npm ci, the launcher says what is missing", async () => {
  const directory = cliDirectory();
  copyFileSync(EXECUTABLE, join(directory, "petstore"));
  const child = spawnTracked([join(directory, "petstore"), "serve"], { cwd: directory });
  expect(await resultOf(child)).toEqual(
    failure(`petstore: Bun is not installed; run npm ci in ${directory}\n`),
  );
});

test("wrong usage and a failure are one line on standard error, and exit status 2 and 1", async () => {
  const { code, out, err } = await petstore("keys create --plan free --name a\u0007\nb");
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toMatch(/^petstore: [^\n]+\n$/);
  const file = join(cliDirectory(), "file");
  writeFileSync(file, "");
  expect(await petstore(`keys create --name x --plan free --data ${file}`)).toEqual(
    failure(`petstore: ${join(file, "production.db")}: a part of the path is a file, not a directory\n`),
  );
});

test("a long output is complete on a pipe; a reader that stops early is not a failure, and output that cannot be written is one", async () => {
  const { code, out } = await petstore("openapi");
  expect(code).toBe(0);
  expect(JSON.parse(out)).toHaveProperty("paths");
  const line = '{ "$0" openapi; echo "status $?" >&2; } | true';
  const child = spawnTracked(["sh", "-c", line, EXECUTABLE], { cwd: cliDirectory() });
  expect(await child.stderr.text()).toBe("status 0\n");
  const full = openSync("/dev/full", "w");
  const failing = Bun.spawn([EXECUTABLE, "openapi"], { stdout: full, stderr: "pipe" });
  expect(await failing.stderr.text()).toBe("petstore: no space is left on the device\n");
  expect(await failing.exited).toBe(1);
  closeSync(full);
});

test("the default data directory is ./data, and the audit trail has the user, whatever the variable USER says", async () => {
  const cwd = cliDirectory();
  const variables = { USER: "eve", LOGNAME: "eve" };
  makeDatabase(join(cwd, "data"));
  const child = spawnPetstore("keys create --name x --plan free --json", { cwd, variables });
  expect(await child.stdout.json()).toMatchObject({ id: 1, name: "x" });
  expect(await child.exited).toBe(0);
  const [entry] = await new InProcessCli().json<{ actor: unknown }[]>("audit", "--data", join(cwd, "data"));
  expect(userName()).not.toBe("eve");
  expect(entry?.actor).toEqual({ operator: null, kind: "command line", name: userName() });
});

test("whoever uses sudo is in the audit trail beside the user of the process", async () => {
  const cwd = cliDirectory();
  makeDatabase(join(cwd, "data"));
  const run = (variables: Variables) =>
    resultOf(spawnPetstore("pets add --name Rex --category 7", { cwd, variables }));
  for (const SUDO_USER of ["ann", userName(), "a\nb"]) expect((await run({ SUDO_USER })).code).toBe(0);
  const entries = await new InProcessCli().json<{ actor: { name: string } }[]>(
    "audit",
    "--data",
    join(cwd, "data"),
  );
  expect(entries.map(({ actor }) => actor.name)).toEqual([
    String(userName()),
    String(userName()),
    `${userName()} (ann)`,
  ]);
});

test.each([
  [0, "root"],
  [1000, "ann"],
  [100, "user 100"],
])("the name of user %p is %p", (uid, name) => {
  const file = join(cliDirectory(), "passwd");
  expect(userName(uid, file)).toBe(`user ${uid}`);
  writeFileSync(
    file,
    "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000:Ann,,,:/home/ann:/bin/sh\n# a comment\n+::::::\n",
  );
  expect(userName(uid, file)).toBe(name);
});

test("a server process stops on a signal, and --access-log - writes a line for each request to standard output", async () => {
  const data = join(cliDirectory(), "data");
  const child = new Child([EXECUTABLE, "serve", "--port", "0", "--data", data, "--access-log", "-"]);
  const [, url = ""] = await child.line(/^ {2}API +(\S+)$/);
  const accessLine = child.line(/^(\{.*"status":.*\})$/);
  expect((await fetch(`${url}/pets`)).status).toBe(401);
  const [, line = ""] = await accessLine;
  expect(JSON.parse(line)).toMatchObject({ keyId: null, method: "GET", operation: null, status: 401 });
  const stopping = child.line(/"server\.stopping".*"SIGHUP"/);
  expect(await child.stop("SIGHUP")).toBe(0);
  await stopping;
});

test("on a terminal the log is for people, and the message has the first key and a code to sign in with", async () => {
  const data = join(cliDirectory(), "data");
  const terminal = spawnOnTerminal(["serve", "--port", "0", "--data", data]);
  await terminal.until("[server.started]");
  terminal.child.kill("SIGTERM");
  expect(await terminal.child.exited).toBe(0);
  const token = readFileSync(join(data, "production-admin-token"), "utf8").trim();
  const output = terminal.output();
  expect(output).toMatch(new RegExp(`^  Admin +http://127\\.0\\.0\\.1:\\d+/\\?code=[\\da-f]{40}$`, "m"));
  expect(output).not.toContain(token);
  expect(output).toMatch(/^ {2}pet_live_\w+$/m);
  expect(output).toMatch(/^\S+Z info {2}the server accepts requests \[server\.started\] version=/m);
  expect(existsSync(join(data, "production-first-key"))).toBeFalse();
});

describe("errors that nothing catches", () => {
  /** Runs a command in a process in which this code runs first. */
  async function runWith(code: string, ...argv: string[]) {
    const cwd = cliDirectory();
    makeDatabase(join(cwd, "data"));
    writeFileSync(join(cwd, "first.ts"), code);
    const main = join(ROOT, "src/cli/main.ts");
    const child = spawnTracked([process.execPath, "--preload", "./first.ts", main, ...argv], { cwd });
    const [err, exitCode] = await Promise.all([child.stderr.text(), child.exited]);
    return { lines: err.split("\n").slice(0, -1), exitCode };
  }

  /** A program that runs this as soon as it listens for such errors. */
  const whenReady = (start: string) =>
    `const timer = setInterval(${start} () => { if (process.listenerCount("unhandledRejection") > 0) { clearInterval(timer); throw new Error("the first", { cause: new TypeError("the second") }); } }, 10);`;

  test.each([
    ["an exception", whenReady("")],
    ["a rejected promise", whenReady("async")],
  ])("%s ends the process, and the log has its stack and cause", async (_name, code) => {
    const { lines, exitCode } = await runWith(code, "serve", "--port", "0");
    expect(exitCode).toBe(1);
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      level: "error",
      event: "process.uncaught-error",
      error: {
        message: "the first",
        stack: expect.stringMatching(/first\.ts:1/),
        cause: { name: "TypeError", message: "the second", stack: expect.stringMatching(/first\.ts:1/) },
      },
    });
  });

  test("a bug in a command is logged with its stack, beside the message", async () => {
    const code = 'crypto.getRandomValues = () => { throw new TypeError("no luck"); };';
    const { lines, exitCode } = await runWith(code, "keys", "create", "--name", "x", "--plan", "free");
    expect(exitCode).toBe(1);
    expect(lines).toEqual([
      expect.stringMatching(/"event":"process\.uncaught-error",.*"message":"no luck","stack":".*first\.ts:1/),
      "petstore: this is a bug in petstore: no luck",
    ]);
  });

  test("the demo removes its directory", async () => {
    const temporary = cliDirectory();
    const code = `import { readdirSync } from "node:fs";
      process.env["TMPDIR"] = "${temporary}";
      setInterval(() => { if (readdirSync("${temporary}").length > 0) throw new Error("the first"); }, 10);`;
    expect((await runWith(code, "demo")).exitCode).toBe(1);
    expect(readdirSync(temporary)).toEqual([]);
  });
});
