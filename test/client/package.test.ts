import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { join } from "node:path";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { startService } from "../service.ts";
import { run, typeErrorsIn } from "./install.ts";

const ROOT = join(import.meta.dir, "../..");

const service = await startService();
const url = new URL("/client.tgz", service.url).href;
/** A program's directory, with the client as npm installs it from the server. */
const directory = temporaryDirectory("client-examples");
const installed = join(directory, "node_modules/@petstore/client");
// Deno looks for packages in node_modules if there is a package.json.
writeFileSync(join(directory, "package.json"), '{"type":"module"}');
await run(["npm", "install", "--no-audit", "--no-fund", url], directory);
afterAll(() => service.stop());
setDefaultTimeout(60_000);

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

describe("the examples of the README and of the guide", () => {
  test("compile, with strict options and the types of browsers alone", async () => {
    writeFileSync(join(directory, "readme.ts"), examples(README));
    writeFileSync(join(directory, "guide.ts"), examples(GUIDE));
    expect(await typeErrorsIn(directory)).toBe("");
  });

  test.each(PROGRAMS)("run in %s", async (_, command) => {
    // One after the other: the examples of one page order the pets that the other one lists.
    for (const page of [README, GUIDE]) {
      writeFileSync(
        join(directory, "examples.mjs"),
        new Bun.Transpiler({ loader: "ts" }).transformSync(examples(page)),
      );
      const output = await run([...command, "examples.mjs"], directory);
      expect(output).toContain("Rex\n");
      expect(output).toContain("order_not_found");
      if (page === GUIDE) expect(output).toContain(`GET ${service.url}/pets?limit=1 1\n`);
    }
  });
});

describe("the package that a server serves", () => {
  const read = (file: string) => readFileSync(join(installed, file), "utf8");

  test("has types, a license, a home page and no dependencies", () => {
    const { version, license } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const manifest = JSON.parse(read("package.json"));
    const homepage = new URL("/docs/client-library", service.url).href;
    expect(manifest).toMatchObject({ name: "@petstore/client", version, license, homepage });
    expect([manifest.dependencies, manifest.peerDependencies]).toEqual([undefined, undefined]);
    expect(existsSync(join(installed, manifest.exports["."].types))).toBe(true);
    expect(read("LICENSE")).toContain("MIT");
  });

  test("has declarations and a source map for each module, with its source", () => {
    for (const module of ["index", "petstore", "errors", "transport"]) {
      expect(read(`${module}.js`)).toEndWith(`//# sourceMappingURL=${module}.js.map\n`);
      const { sourcesContent } = JSON.parse(read(`${module}.js.map`));
      expect(sourcesContent).toEqual([readFileSync(join(ROOT, `src/client/${module}.ts`), "utf8")]);
      expect(read(`${module}.d.ts`)).not.toContain('.ts"');
    }
  });

  test("has a README with the address of the server and links that work", async () => {
    const readme = read("README.md");
    expect(readme).toContain(`baseUrl: "${service.url}"`);
    expect(readme).toContain(`npm install ${url}`);
    const links = Array.from(readme.matchAll(/\]\(([^)]*)\)/g), ([, link = ""]) => link);
    expect(links).not.toBeEmpty();
    for (const link of links) {
      const page = await (await fetch(link, { headers: { Accept: "text/html" } })).text();
      expect(page).toContain(`id="${new URL(link).hash.slice(1) || "main"}"`);
    }
  });

  test("has no time in it: npm compares its bytes with those of other servers", async () => {
    const files = await new Bun.Archive(await (await fetch(url)).bytes()).files();
    expect([...files.keys()]).toContain("package/index.d.ts");
    for (const file of files.values()) expect(file.lastModified).toBe(0);
  });

  test("is transferred again only if it has changed", async () => {
    const { headers } = await fetch(url, { method: "HEAD" });
    expect(headers.get("Content-Type")).toBe("application/gzip");
    const again = await fetch(url, { headers: { "If-None-Match": headers.get("ETag") ?? "" } });
    expect(again.status).toBe(304);
  });

  test("names itself in User-Agent", async () => {
    const { version } = JSON.parse(read("package.json"));
    expect(read("transport.js")).toContain(`petstore-client/${version}"`);
  });
});

async function minified(entry: string): Promise<string> {
  writeFileSync(join(directory, "entry.js"), entry);
  const entrypoints = [join(directory, "entry.js")];
  const { outputs } = await Bun.build({ entrypoints, minify: true, target: "browser" });
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
