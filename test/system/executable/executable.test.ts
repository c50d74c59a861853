import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bearer } from "../../bearer.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { Child } from "../../../trials/harness/child.ts";
import { builtExecutable, COMMIT } from "../../../scripts/built-executable.ts";
import { startPetstore } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { cleanUp, InProcessCli, resultOf, spawnTracked, cliDirectory } from "../../cli/cli.ts";

afterAll(cleanUp);

const EXECUTABLE = await builtExecutable();

/** Runs it in a directory without node_modules, and without Node, npm and Bun on the path. */
const run = (argv: readonly string[], cwd = cliDirectory()) =>
  resultOf(spawnTracked([EXECUTABLE, ...argv], { cwd, variables: { PATH: "/nonexistent", HOME: cwd } }));

const serve = (...argv: string[]) => {
  const cwd = cliDirectory();
  const alone = ["env", "-i", "-C", cwd, "PATH=/nonexistent", `HOME=${cwd}`];
  return startPetstore(["--port", "0", "--admin-address", "127.0.0.1:0", ...argv], alone, [EXECUTABLE]);
};
const withKey = ({ key }: { key: string | undefined }) => bearer(key);

describe("the executable", () => {
  test("--version names the version, the commit and the runtime", async () => {
    const out = `petstore ${packageJson.version} (commit ${COMMIT}, Bun ${Bun.version})\n`;
    expect(await run(["--version"])).toEqual({ code: 0, out, err: "" });
  });

  test.each(["--help", "openapi", "completion bash", "completion zsh", "completion fish"])(
    "%s prints what the program prints from its source",
    async (line) => {
      const argv = line.split(" ");
      expect(await run(argv)).toEqual(await new InProcessCli().run(argv));
    },
  );

  test("settings and code of the working directory have no effect", async () => {
    const cwd = cliDirectory();
    writeFileSync(join(cwd, "preload.ts"), 'throw new Error("preloaded");');
    writeFileSync(
      join(cwd, "bunfig.toml"),
      'preload = ["./preload.ts"]\n[run]\npreload = ["./preload.ts"]\n',
    );
    writeFileSync(join(cwd, ".env"), "PETSTORE_NO_SUCH_SETTING=1\n");
    expect(await run(["migrate"], cwd)).toMatchObject({ code: 0 });
    const { code, out, err } = await run(["keys", "list"], cwd);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toStartWith("There are no keys in production");
  });
});

const data = join(cliDirectory(), "data");
const server = await serve("--data", data);
const origin = server.url.slice(0, -"/v1".length);

describe("a server of the executable on SQLite", () => {
  test("looks names up again after a second, as the launcher says, in the process that was started", () => {
    const variables = readFileSync(`/proc/${server.pid}/environ`, "latin1").split("\0");
    expect(variables).toContain("BUN_CONFIG_DNS_TIME_TO_LIVE_SECONDS=1");
  });

  test("creates and lists pets, exact to the last digit", async () => {
    const headers = { ...withKey(server), "Content-Type": "application/json" };
    const body = '{"name":"Rex","categoryId":9007199254740993}';
    const created = await fetch(`${server.url}/pets`, { method: "POST", headers, body });
    expect({ status: created.status, body: await created.text() }).toEqual({
      status: 201,
      body: '{"id":1,"name":"Rex","categoryId":9007199254740993}',
    });
    expect((await fetch(`${server.url}/pets`, { headers })).status).toBe(200);
  });

  test("serves the documentation, the OpenAPI document and the client library", async () => {
    const page = await fetch(`${origin}/docs`);
    expect(page.status).toBe(200);
    const html = await page.text();
    expect(html).toContain("Petstore");
    // It needs no npm, so the page names none.
    expect(html).toMatch(/<code>(<[^>]*>)*petstore(<[^>]*>)* keys create/);
    expect((await fetch(`${origin}/openapi.json`)).status).toBe(200);
    expect((await fetch(`${origin}/openapi.yaml`)).status).toBe(200);
    const files = await new Bun.Archive(await (await fetch(`${origin}/client.tgz`)).bytes()).files();
    expect([...files.keys()]).toContain("package/index.d.ts");
    expect((await fetch(`${origin}/client-1.1.0.tgz`)).status).toBe(200);
  });

  test("serves every file that the documentation and the console load", async () => {
    for (const page of [`${origin}/docs`, `${server.adminUrl}/`]) {
      const html = await (await fetch(page)).text();
      const paths = [...html.matchAll(/<(?:link|script)\b[^>]*\b(?:href|src)="([^"]+\.(?:js|css))"/g)];
      expect(paths.length).toBe(2);
      for (const [, path = ""] of paths) {
        const { status, headers } = await fetch(new URL(path, page));
        expect({ path, status, type: headers.get("content-type")?.split(";")[0] }).toEqual({
          path,
          status: 200,
          type: path.endsWith(".js") ? "text/javascript" : "text/css",
        });
      }
    }
  });

  test("commands work beside it", async () => {
    const list = async (...argv: string[]) =>
      JSON.parse((await run([...argv, "--json", "--data", data])).out);
    const create = ["keys", "create", "--name", "second", "--plan", "pro"];
    expect(await list(...create)).toMatchObject({ id: 2, name: "second" });
    expect(await list("keys", "list")).toHaveLength(2);
    expect(await list("pets", "list")).toMatchObject([{ id: 1, name: "Rex" }]);
    expect(await list("orders", "list")).toEqual([]);
    expect(await list("audit")).not.toEqual([]);
    expect(await list("backup", join(data, "backups"))).toMatchObject({ rows: { pets: 1 } });
    expect(await run(["admin-url", "--data", data])).toMatchObject({ code: 0, err: "" });
  });

  test("stops on SIGTERM and says so", async () => {
    expect(await server.stop("SIGTERM")).toBe(0);
    expect(server.log.at(-1)).toMatchObject({ event: "server.stopped" });
  });
});

test("a server of the executable on PostgreSQL counts requests there", async () => {
  const storage = ["--database-url", await postgresUrl()];
  const server = await serve(...storage, "--data", cliDirectory());
  const responses = [await fetch(`${server.url}/pets`, { headers: withKey(server) })];
  responses.push(await fetch(`${server.url}/pets`, { headers: withKey(server) }));
  const remaining = responses.map(({ headers }) => headers.get("x-ratelimit-remaining"));
  expect({ statuses: responses.map(({ status }) => status), remaining }).toEqual({
    statuses: [200, 200],
    remaining: ["59", "58"],
  });
  expect(await server.stop("SIGTERM")).toBe(0);
});

test("the demo of the executable starts, and Ctrl-C ends it", async () => {
  const cwd = cliDirectory();
  const child = new Child([EXECUTABLE, "demo"], { cwd, env: { PATH: "/nonexistent", HOME: cwd } });
  await child.line(/This key is for you/);
  expect(await child.stop("SIGINT")).toBe(0);
});
