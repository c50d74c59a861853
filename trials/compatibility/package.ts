/**
 * `npm run check:package`: what npm, TypeScript and Deno make of @petstore/client. Needs the npm registry.
 */
import { join } from "node:path";
import { runCommand, text } from "../harness/command-line.ts";
import {
  type Check,
  expectEqual,
  PACKAGE_CHECK_PACKAGES as PACKAGES,
  run,
  runChecks,
  succeed,
  Tools,
} from "./tools.ts";

const ROOT = join(import.meta.dir, "../..");
const PACKAGE = join(ROOT, "src/client");

await runCommand({
  name: "check:package",
  flags: { tools: text },
  maxMinutes: 20,
  async main({ tools: folder }) {
    const tools = await Tools.install(PACKAGES, folder);
    return runChecks([publint(tools), types(tools), deno(tools)]);
  },
});

function publint(tools: Tools): Check {
  return {
    name: `publint ${PACKAGES.publint}`,
    async run() {
      const out = succeed(await tools.run("publint", [PACKAGE, "--strict"], { cwd: ROOT }));
      if (!out.includes("All good!")) throw new Error(out);
      return "no errors, warnings or suggestions";
    },
  };
}

/** The package has no CommonJS form, so what a `require` finds is left out. */
function types(tools: Tools): Check {
  return {
    name: `@arethetypeswrong/cli ${PACKAGES["@arethetypeswrong/cli"]}`,
    async run() {
      const flags = ["--pack", PACKAGE, "--profile", "esm-only", "--format", "json"];
      const { problems } = JSON.parse(succeed(await tools.run("attw", flags, { cwd: ROOT })));
      expectEqual("the kinds of problems", Object.keys(problems), ["CJSResolvesToESM"]);
      return "the types are found by Node and by bundlers";
    },
  };
}

/** The tests run the examples of the README and of the guide in Deno too, if they know where it is. */
function deno(tools: Tools): Check {
  return {
    name: `deno ${PACKAGES.deno}`,
    async run() {
      const name = `@deno/linux-${process.arch}-glibc`;
      const executable = join(tools.folder, "node_modules", name, "deno");
      const env = { PETSTORE_TEST_DENO: executable };
      const tests = [process.execPath, "test", "test/client/package.test.ts", "-t", "run in Deno"];
      const { err } = await run(tests, { cwd: ROOT, env });
      if (!/^ 1 pass$/m.test(err) || !/^ 0 fail$/m.test(err)) throw new Error(err);
      return "runs the examples of the README and of the guide";
    },
  };
}
