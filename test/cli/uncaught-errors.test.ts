import { afterAll, expect, test, setDefaultTimeout } from "bun:test";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cleanUp, EXECUTABLE, spawnTracked, temporaryDirectory } from "./cli.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

/** Runs a command in a process in which this code runs first. */
async function runWith(code: string, ...argv: string[]) {
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, "first.ts"), code);
  const main = join(dirname(EXECUTABLE), "src/cli/main.ts");
  const child = spawnTracked([process.execPath, "--preload", "./first.ts", main, ...argv], { cwd });
  const [err, exitCode] = await Promise.all([child.stderr.text(), child.exited]);
  return { lines: err.split("\n").slice(0, -1), exitCode };
}

const THROW = 'throw new Error("the first", { cause: new TypeError("the second") });';

test.each([
  ["an exception", `setTimeout(() => { ${THROW} }, 500);`],
  ["a rejected promise", `setTimeout(async () => { ${THROW} }, 500);`],
])("%s that nothing catches ends the process, and the log has its stack and cause", async (_name, code) => {
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
