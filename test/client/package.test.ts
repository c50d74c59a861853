import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { join } from "node:path";
import { runProgram } from "../../trials/harness/child.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { version } from "../../package.json" with { type: "json" };
import { certificateOf } from "../http1/certificate.ts";
import { startService } from "../service.ts";
import { run, typeErrorsIn } from "./install.ts";

const ROOT = join(import.meta.dir, "../..");

const service = await startService({ maxConnectionsPerAddress: 256 });
// Windows are open for clients, whose clock is that of the machine.
service.clock.advance(Date.now() - service.clock.now());
/** The releases in `src/client/releases`. After a release its own package is there, too. */
const EARLIER_RELEASES = readdirSync(join(ROOT, "src/client/releases"))
  .map((name) => name.replace(/\.tgz$/, ""))
  .filter((release) => release !== version)
  .toSorted(Bun.semver.order);
const url = new URL(`/client-${version}.tgz`, service.url).href;
/** A program's directory, with the client as npm installs it from the server. */
const directory = temporaryDirectory("client-examples");
const installed = join(directory, "node_modules/@petstore/client");
// Deno looks for packages in node_modules if there is a package.json.
writeFileSync(join(directory, "package.json"), '{"type":"module"}');
// npm keeps the file for a year, and another test may get the port.
// `npm run -s` makes an npm that it starts silent, too.
const NPM = ["npm", "--loglevel=notice", "--no-audit", "--no-fund", "--cache", join(directory, "cache")];
await run([...NPM, "install", url], directory);
afterAll(() => service.stop());
setDefaultTimeout(60_000);

/** The examples of a page as one program, which talks to the test's server. */
function examples(page: string): string {
  const text = readFileSync(join(ROOT, page), "utf8");
  const blocks = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  expect(blocks).not.toBeEmpty();
  return blocks.join("\n").replaceAll("http://127.0.0.1:8080/v1", service.url);
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
      const output = await run([...command, "examples.mjs"], directory, { PETSTORE_KEY: service.key });
      expect(output).toContain("Rex\n");
      expect(output).toContain("order_not_found");
      if (page === GUIDE) expect(output).toContain(`GET ${service.url}/pets?limit=1 1\n`);
    }
  });
});

test.each(PROGRAMS)(
  "500 calls at once in %s, with one AbortSignal, need no retry and no warning, nor does another client",
  async (_, command) => {
    const program = `
      import { Petstore } from "@petstore/client";
      let retries = 0;
      const options = { key: "${service.key}", baseUrl: "${service.url}", onRetry: () => retries++ };
      const [petstore, other] = [new Petstore(options), new Petstore(options)];
      const { signal } = new AbortController();
      const calls = Array.from({ length: 500 }, () => petstore.pets.listPage({ limit: 1, signal }));
      for (let i = 0; i < 20; i++) await other.pets.listPage({ limit: 1 });
      await Promise.all(calls);
      console.log(retries);`;
    writeFileSync(join(directory, "calls.mjs"), program);
    const result = await runProgram([...command, "calls.mjs"], { cwd: directory });
    expect(result).toEqual({ code: 0, out: "0\n", err: "" });
  },
);

test.each(PROGRAMS)(
  "in %s, a certificate that is not trusted and a server without TLS end a first call at once",
  async (_, command) => {
    const requests: string[] = [];
    const answer = ({ url }: Request) => new Response(String(requests.push(url)));
    await using tls = Bun.serve({ port: 0, tls: certificateOf("localhost"), fetch: answer });
    await using plain = Bun.serve({ port: 0, fetch: answer });
    const program = `
      import { ConnectionError, Petstore } from "@petstore/client";
      for (const port of [${tls.port}, ${plain.port}]) {
        let sent = 0;
        const options = { key: "pet_live_x", baseUrl: \`https://localhost:\${port}/v1\`, onRequest: () => sent++ };
        await new Petstore(options).pets.listPage().catch((error) => console.log(sent, error instanceof ConnectionError));
      }`;
    writeFileSync(join(directory, "elsewhere.mjs"), program);
    expect(await run([...command, "elsewhere.mjs"], directory)).toBe("1 true\n1 true\n");
    expect(requests).toEqual([]);
  },
);

describe("the first program after npm init -y", () => {
  const program = `import { Petstore } from "@petstore/client";
    const petstore = new Petstore({ key: "${service.key}", baseUrl: "${service.url}" });`;
  const statement = "console.log((await petstore.key.get()).plan);";

  async function application(): Promise<string> {
    const directory = temporaryDirectory("client-application");
    await run([...NPM, "init", "-y"], directory);
    await run([...NPM, "install", url, "--cache", join(directory, "cache")], directory);
    return directory;
  }

  test("compiles and runs as a module, whatever the type of the package", async () => {
    const directory = await application();
    writeFileSync(join(directory, "first.mts"), program + statement);
    writeFileSync(join(directory, "first.mjs"), program + statement);
    expect(await typeErrorsIn(directory, { include: ["first.mts"] })).toBe("");
    expect(await run([process.execPath, "first.mts"], directory)).toBe("enterprise\n");
    expect(await run(["node", "first.mjs"], directory)).toBe("enterprise\n");
  });

  test("compiles in CommonJS with module nodenext, as the guide says, and not with node16", async () => {
    const directory = await application();
    writeFileSync(join(directory, "first.cts"), `${program}\nvoid petstore;`);
    expect(await typeErrorsIn(directory, { include: ["first.cts"] })).toBe("");
    const node16 = { include: ["first.cts"], module: "Node16" };
    expect(await typeErrorsIn(directory, node16)).toContain("TS1479");
  });
});

describe("the package that a server serves", () => {
  const read = (file: string) => readFileSync(join(installed, file), "utf8");

  test("has types, a license and no dependencies", () => {
    const { license } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const manifest = JSON.parse(read("package.json"));
    expect(manifest).toMatchObject({ name: "@petstore/client", version, license, engines: { node: ">=20" } });
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

  test("is the same file on every server, and says how to install its release", async () => {
    await using other = await startService({ environment: "staging" });
    const there = await fetch(new URL(`/client-${version}.tgz`, other.url));
    const bytes = await (await fetch(url)).bytes();
    expect(await there.bytes()).toEqual(bytes);
    const files = await new Bun.Archive(bytes).files();
    expect([...files.keys()]).toContain("package/index.d.ts");
    for (const file of files.values()) expect(file.lastModified).toBe(0);
    expect(read("README.md")).toContain(`npm install http://127.0.0.1:8080/client-${version}.tgz\n`);
  });

  test("is kept forever by caches, and its name without a release redirects to it", async () => {
    const { headers } = await fetch(url, { method: "HEAD" });
    expect(headers.get("Content-Type")).toBe("application/gzip");
    expect(headers.get("Cache-Control")).toBe("public, max-age=31536000, immutable");
    const again = await fetch(url, { headers: { "If-None-Match": headers.get("ETag") ?? "" } });
    expect(again.status).toBe(304);
    const { status, headers: redirect } = await fetch(new URL("/client.tgz", url), { redirect: "manual" });
    expect([status, redirect.get("Location")]).toEqual([302, `client-${version}.tgz`]);
  });

  test("of a release that this server does not have is a 404 whose reason npm ci shows", async () => {
    const old = temporaryDirectory("client-lockfile");
    const releases = [...EARLIER_RELEASES, version].join(", ");
    const reason = `This server has the client library of ${releases}: npm install ${url}`;
    for (const file of ["package.json", "package-lock.json"]) {
      const text = readFileSync(join(directory, file), "utf8");
      writeFileSync(join(old, file), text.replaceAll(`client-${version}.tgz`, "client-1.0.0.tgz"));
    }
    const { code, err } = await runProgram([...NPM, "ci", "--cache", join(old, "cache")], { cwd: old });
    expect([code, err]).toEqual([1, expect.stringContaining(`npm notice ${reason}\n`)]);
    const response = await fetch(new URL("/client-1.0.0.tgz", url));
    expect(await response.json()).toEqual({ code: "not_found", message: reason, status: 404 });
    expect(response.headers.get("Cache-Control")).toBe("no-store");
  });

  test("is there for every earlier release since 1.1.0", () => {
    const changelog = readFileSync(join(ROOT, "CHANGELOG.md"), "utf8");
    const released = Array.from(changelog.matchAll(/^## (\d+\.\d+\.\d+) /gm), ([, release = ""]) => release);
    const since = released.filter(
      (release) => release !== version && Bun.semver.order(release, "1.1.0") >= 0,
    );
    expect(EARLIER_RELEASES).toEqual(since.toSorted(Bun.semver.order));
  });

  test.each(EARLIER_RELEASES)("of %s installs with a lockfile from before the upgrade", async (release) => {
    const kept = readFileSync(join(ROOT, `src/client/releases/${release}.tgz`));
    const response = await fetch(new URL(`/client-${release}.tgz`, url));
    expect(response.headers.get("Cache-Control")).toBe("public, max-age=31536000, immutable");
    expect(Buffer.from(await response.bytes())).toEqual(kept);

    const application = temporaryDirectory("client-upgrade");
    const resolved = new URL(`/client-${release}.tgz`, url).href;
    const integrity = `sha512-${Bun.SHA512.hash(kept, "base64")}`;
    const dependencies = { "@petstore/client": resolved };
    const packages = {
      "": { dependencies },
      "node_modules/@petstore/client": { version: release, resolved, integrity },
    };
    writeFileSync(join(application, "package.json"), JSON.stringify({ dependencies }));
    writeFileSync(
      join(application, "package-lock.json"),
      JSON.stringify({ lockfileVersion: 3, requires: true, packages }),
    );
    await run([...NPM, "ci", "--cache", join(application, "cache")], application);
    const manifest = readFileSync(join(application, "node_modules/@petstore/client/package.json"), "utf8");
    expect(JSON.parse(manifest)).toMatchObject({ name: "@petstore/client", version: release });
  });

  test("names itself in User-Agent", async () => {
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
  test("the whole client is less than 6.7 kB, minified and compressed", async () => {
    const size = gzipSync(await minified('export * from "@petstore/client"')).length;
    expect(size).toBeGreaterThan(1_000);
    expect(size).toBeLessThan(6_700);
  });

  test("what is not used is left out", async () => {
    const errorOnly = await minified('export { PetstoreError } from "@petstore/client"');
    expect(errorOnly.length).toBeLessThan(500);
  });
});
