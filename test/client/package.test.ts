import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { join } from "node:path";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { type Service, startService } from "../service.ts";

const ROOT = join(import.meta.dir, "../..");
const PACKAGE = join(ROOT, "src/client");

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

async function run(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [code, out, err] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  if (code !== 0) throw new Error(`${command.join(" ")}: exit code ${code}\n${out}${err}`);
  return out;
}

/** The examples of a page as one program, which talks to the test's server. */
function examples(page: string): string {
  const text = readFileSync(join(ROOT, page), "utf8");
  const blocks = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  expect(blocks).not.toBeEmpty();
  return blocks
    .join("\n")
    .replaceAll(/pet_live_(?:…|YOUR_KEY)/g, service.key)
    .replaceAll("http://127.0.0.1:8080/v1", service.url);
}

const README = "src/client/README.md";
const GUIDE = "docs/client-library.md";

/** Deno takes 81 MB, so it is not installed with the other packages. */
const { PETSTORE_TEST_DENO } = process.env;
const PROGRAMS: [name: string, command: string[]][] = [
  ["Bun", [process.execPath]],
  ["Node", ["node"]],
];
if (PETSTORE_TEST_DENO !== undefined) PROGRAMS.push(["Deno", [PETSTORE_TEST_DENO, "run", "--allow-net"]]);

const TIMEOUT_MS = 60_000;

describe("the examples of the README and of the guide", () => {
  const folder = temporaryFolder("client-examples");
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  // Deno looks for packages in node_modules if there is a package.json.
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');

  test(
    "compile, with strict options and the types of browsers alone",
    async () => {
      const compilerOptions = {
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        skipLibCheck: false,
        noEmit: true,
        target: "ES2022",
        module: "NodeNext",
        moduleResolution: "NodeNext",
        lib: ["ES2022", "DOM"],
        types: [],
      };
      writeFileSync(
        join(folder, "tsconfig.json"),
        JSON.stringify({ compilerOptions, files: ["readme.ts", "guide.ts"] }),
      );
      writeFileSync(join(folder, "readme.ts"), examples(README));
      writeFileSync(join(folder, "guide.ts"), examples(GUIDE));
      await run([process.execPath, "check", "--no-script"], folder);
    },
    TIMEOUT_MS,
  );

  test.each(PROGRAMS)(
    "run in %s",
    async (_, command) => {
      // One after the other: the examples of one page order the pets that the other one lists.
      for (const page of [README, GUIDE]) {
        writeFileSync(
          join(folder, "examples.mjs"),
          new Bun.Transpiler({ loader: "ts" }).transformSync(examples(page)),
        );
        const output = await run([...command, "examples.mjs"], folder);
        expect(output).toContain("Rex\n");
        expect(output).toContain("order_not_found");
        if (page === GUIDE) expect(output).toContain(`GET ${service.url}/pets?limit=1 1\n`);
      }
    },
    TIMEOUT_MS,
  );
});

test.each([
  ["Bun", process.execPath],
  ["Node", "node"],
])("%s imports the package from the root of the repository", async (_, program) => {
  const script = 'import { Petstore } from "@petstore/client"; console.log(typeof Petstore)';
  const flag = program === "node" ? ["--input-type=module", "-e"] : ["-e"];
  expect(await run([program, ...flag, script], ROOT)).toBe("function\n");
});

async function minified(entry: string): Promise<string> {
  const folder = temporaryFolder("client-bundle");
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "entry.js"), entry);
  const { outputs } = await Bun.build({
    entrypoints: [join(folder, "entry.js")],
    minify: true,
    target: "browser",
  });
  return (await outputs[0]?.text()) ?? "";
}

describe("size", () => {
  test("the whole client is less than 6 kB, minified and compressed", async () => {
    const size = gzipSync(await minified('export * from "@petstore/client"')).length;
    expect(size).toBeGreaterThan(1_000);
    expect(size).toBeLessThan(6_000);
  });

  test("what is not used is left out", async () => {
    const errorOnly = await minified('export { PetstoreError } from "@petstore/client"');
    expect(errorOnly.length).toBeLessThan(500);
  });
});

test("the package has no dependencies", () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
  expect([dependencies, peerDependencies]).toEqual([undefined, undefined]);
});
