/*
 * Runs `npm run check:package`: it checks how npm, TypeScript and Deno use @petstore/client. It needs the npm registry.
 */

import { join } from "node:path";
import { loadClientFiles } from "../../src/browser-bundle/bundle.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { runCommand, text } from "../harness/command-line.ts";
import { type Checks, expectEqual, installTools, run, runChecks, type Tools } from "./tools.ts";

const ROOT = join(import.meta.dir, "../..");
const PACKAGE = temporaryDirectory("client-package");
for (const [name, content] of Object.entries(await loadClientFiles()))
  await Bun.write(join(PACKAGE, name), content);
const PACKAGES = { publint: "0.3.25", "@arethetypeswrong/cli": "0.18.5", deno: "2.9.5" };

const checksWith = (tools: Tools): Checks => ({
  async publint() {
    const { out } = await tools.run("publint", [PACKAGE, "--strict"], { cwd: ROOT });
    if (!out.includes("All good!")) throw new Error(out);
    return "no errors, warnings or suggestions";
  },

  /** The package has no CommonJS form, so the result of `require` is ignored. */
  async "@arethetypeswrong/cli"() {
    const flags = ["--pack", PACKAGE, "--profile", "esm-only", "--format", "json"];
    const { problems } = JSON.parse((await tools.run("attw", flags, { cwd: ROOT })).out);
    expectEqual("the kinds of problems", Object.keys(problems), ["CJSResolvesToESM"]);
    return "the types are found by Node and by bundlers";
  },

  /** The tests run the examples of the README and of the guide in Deno too, if its location is known. */
  async deno() {
    const executable = join(tools.directory, "node_modules", `@deno/linux-${process.arch}-glibc`, "deno");
    const tests = [process.execPath, "test", "test/client/package.test.ts", "-t", "run in Deno"];
    const { err } = await run(tests, { cwd: ROOT, env: { PETSTORE_TEST_DENO: executable } });
    if (!/^ 1 pass$/m.test(err) || !/^ 0 fail$/m.test(err)) throw new Error(err);
    return "runs the examples of the README and of the guide";
  },
});

await runCommand({
  name: "check:package",
  flags: { tools: text },
  maxMinutes: 20,
  main: async ({ tools: directory }) =>
    runChecks(PACKAGES, checksWith(await installTools(PACKAGES, directory))),
});
